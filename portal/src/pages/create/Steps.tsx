import { Check } from 'lucide-react'

const STEPS = ['Account', 'Group', 'Connect']

/** A new customer's progress from sign-up to the first entry. */
export function Steps({ current }: { current: number }) {
  return (
    <ol aria-label="Getting started" className="mb-8 flex flex-wrap items-center gap-x-3 gap-y-2 text-sm">
      {STEPS.map((step, index) => (
        <li key={step} aria-current={index === current ? 'step' : undefined} className="flex items-center gap-3">
          <span className={`flex items-center gap-2 ${index === current ? 'font-medium' : 'text-ink-3'}`}>
            <span
              aria-hidden
              className={`nums flex size-5 items-center justify-center rounded-full text-xs ${index <= current ? 'bg-accent text-accent-ink' : 'border border-line-strong'}`}
            >
              {index < current ? <Check className="size-3" strokeWidth={3} /> : index + 1}
            </span>
            {step}
            {index < current && <span className="sr-only">(done)</span>}
          </span>
          {index < STEPS.length - 1 && <span aria-hidden className="h-px w-8 bg-line-strong" />}
        </li>
      ))}
    </ol>
  )
}
