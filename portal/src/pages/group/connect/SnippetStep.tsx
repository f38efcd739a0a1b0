import { Tabs } from '@base-ui/react/tabs'
import { CodeBlock } from '@/ui/Copy'
import { LANGUAGES, snippet, type Place } from './snippets'

export function SnippetStep({ place }: { place: Place }) {
  return (
    <Tabs.Root defaultValue="python">
      <Tabs.List aria-label="Language" className="mb-3 inline-flex rounded-lg border border-line bg-surface p-0.5">
        {LANGUAGES.map(({ id, label }) => (
          <Tabs.Tab
            key={id}
            value={id}
            className="rounded-md px-3 py-1.5 text-[13px] text-ink-2 hover:text-ink aria-selected:bg-hover aria-selected:font-medium aria-selected:text-ink"
          >
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {LANGUAGES.map(({ id, label, note }) => (
        <Tabs.Panel key={id} value={id} tabIndex={-1}>
          <CodeBlock code={snippet(id, place)} label={`${label} snippet`} />
          <p className="mt-2 text-[13px] text-ink-3">{note}</p>
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  )
}
