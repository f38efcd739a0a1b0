import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Logo } from '@/ui/Logo'

/** The frame of sign-up and login: one form, and the product's description beside it on wide screens. */
export function AuthFrame({
  title,
  lead,
  children,
  footer,
}: {
  title: string
  lead: ReactNode
  children: ReactNode
  footer: ReactNode
}) {
  return (
    <div className="grid min-h-dvh lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
      <main className="flex flex-col px-5 py-6 sm:px-10">
        <Logo />
        <div className="mx-auto flex w-full max-w-sm flex-1 flex-col justify-center py-12">
          <h1 className="text-[28px] leading-tight font-semibold">{title}</h1>
          <p className="mt-2 mb-8 text-sm text-ink-2">{lead}</p>
          {children}
          <p className="mt-8 text-sm text-ink-2">{footer}</p>
        </div>
        <footer className="flex gap-5 text-[13px] text-ink-3">
          <Link to="/docs" className="rounded underline-offset-4 hover:text-ink hover:underline">
            Documentation
          </Link>
          <Link to="/status" className="rounded underline-offset-4 hover:text-ink hover:underline">
            Service status
          </Link>
        </footer>
      </main>
      <aside
        aria-label="About Quorate"
        className="hidden border-l border-line bg-sunken lg:flex lg:flex-col lg:justify-center lg:px-16"
      >
        <Pitch />
      </aside>
    </div>
  )
}

const STEPS = [
  [
    'Say what the log must do',
    'Durability, replicas, request size and rate. The price and the answer appear as you type.',
  ],
  ['Append', 'One key, one line of Python or JavaScript. Entries are ordered, replicated and acknowledged.'],
  ['Hold us to it', 'Every minute is measured against the SLA. When it is missed, the credit comes by itself.'],
]

function Pitch() {
  return (
    <div className="max-w-md">
      <RingPicture />
      <p className="mt-10 text-2xl leading-snug font-semibold tracking-tight">
        Ordered, durable logs with an SLA that is measured and paid for.
      </p>
      <ol className="mt-8 space-y-5">
        {STEPS.map(([head, text], index) => (
          <li key={head} className="flex gap-4">
            <span aria-hidden className="nums mt-0.5 text-sm text-ink-3">
              {index + 1}
            </span>
            <span>
              <span className="block text-sm font-medium">{head}</span>
              <span className="mt-0.5 block text-sm leading-relaxed text-ink-2">{text}</span>
            </span>
          </li>
        ))}
      </ol>
    </div>
  )
}

function RingPicture() {
  const nodes = [-90, -18, 54, 126, 198].map((degrees) => (degrees * Math.PI) / 180)
  return (
    <svg viewBox="0 0 120 120" aria-hidden className="size-28">
      <circle cx="60" cy="60" r="44" fill="none" stroke="var(--line-strong)" strokeWidth="1.5" />
      {nodes.map((angle, index) => (
        <circle
          key={angle}
          cx={60 + 44 * Math.cos(angle)}
          cy={60 + 44 * Math.sin(angle)}
          r={index === 0 ? 9 : 7}
          fill={index === 0 ? 'var(--accent)' : 'var(--sunken)'}
          stroke="var(--accent)"
          strokeWidth="2"
        />
      ))}
    </svg>
  )
}
