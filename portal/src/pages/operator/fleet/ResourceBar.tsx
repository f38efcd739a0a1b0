import { percent } from '@/format/quantity'
import { promisedPart, type Resource } from './resources'
import type { Amounts } from '@/api'

const WARN_PART = 0.85

interface Props {
  resource: Resource
  use: { promisable: Amounts; allocated: Amounts }
  /** With the amounts below, for the fleet as a whole. */
  amounts?: boolean
}

/** The promised part of one resource. */
export function ResourceBar({ resource, use, amounts = false }: Props) {
  const part = promisedPart(use, resource)
  if (part === null) return <span className="text-ink-3">–</span>
  const [promised, whole] = [resource.of(use.allocated), resource.of(use.promisable)]
  const title = `${resource.show(promised ?? 0)} of ${resource.show(whole ?? 0)} promised`
  return (
    <span className="block" title={title}>
      <span className="nums block text-[13px]">{percent(part, 0)}</span>
      <span aria-hidden className="mt-1 block h-1.5 w-full min-w-14 overflow-hidden rounded-full bg-line">
        <span
          className={`block h-full rounded-full ${part > WARN_PART ? 'bg-warn' : 'bg-accent'}`}
          style={{ width: `${String(Math.min(1, part) * 100)}%` }}
        />
      </span>
      {amounts && <span className="nums mt-1 block text-xs text-ink-3">{title}</span>}
    </span>
  )
}
