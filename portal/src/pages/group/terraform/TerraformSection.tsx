import type { Group } from '@/api'
import { CodeBlock } from '@/ui/Copy'
import { Section } from '@/ui/Surface'
import { configurationOf } from './configuration'

/** For teams that keep groups in files. */
export function TerraformSection({ group }: { group: Group }) {
  return (
    <Section
      title="Terraform"
      description="Keep this group in a file. The first apply takes it over and changes nothing; later ones resize it in place."
    >
      <details>
        <summary className="rounded text-sm text-ink-2 hover:text-ink">Show the configuration</summary>
        <div className="mt-4">
          <CodeBlock code={configurationOf(group, window.location.origin)} label="Terraform configuration" />
        </div>
        <p className="mt-3 text-[13px] text-ink-3">
          The key in <code className="font-mono">QUORATE_API_KEY</code> needs the scope{' '}
          <code className="font-mono">manage</code> on this group.
        </p>
      </details>
    </Section>
  )
}
