import { LoaderCircle } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'

type Variant = 'primary' | 'secondary' | 'quiet' | 'danger'
type Size = 'small' | 'medium'

const BASE =
  'inline-flex items-center justify-center gap-2 rounded-lg font-medium whitespace-nowrap select-none transition-colors duration-100'
const VARIANTS: Record<Variant, string> = {
  primary: 'bg-accent text-accent-ink hover:bg-accent-hover',
  secondary: 'border border-line-strong bg-surface text-ink hover:bg-hover',
  quiet: 'text-ink-2 hover:bg-hover hover:text-ink',
  danger: 'bg-danger text-danger-ink hover:opacity-90',
}
const SIZES: Record<Size, string> = { small: 'h-8 px-3 text-[13px]', medium: 'h-10 px-4 text-sm' }

export function buttonClass(variant: Variant = 'primary', size: Size = 'medium'): string {
  return `${BASE} ${VARIANTS[variant]} ${SIZES[size]}`
}

interface Props extends Omit<ComponentProps<'button'>, 'disabled'> {
  variant?: Variant
  size?: Size
  /** Shows that the action is running, and ignores further presses. The label stays, so that nothing moves. */
  busy?: boolean
  /** The reason why the action is not possible now. The button stays focusable and shows it. */
  disabledReason?: string | undefined
  icon?: ReactNode
}

export function Button({ variant, size, busy, disabledReason, icon, className, children, onClick, ...rest }: Props) {
  const blocked = busy || disabledReason !== undefined
  return (
    <button
      type="button"
      {...rest}
      aria-disabled={blocked || undefined}
      aria-busy={busy || undefined}
      title={disabledReason ?? rest.title}
      onClick={(event) => {
        if (blocked) event.preventDefault()
        else onClick?.(event)
      }}
      className={`${buttonClass(variant, size)} ${disabledReason === undefined ? '' : 'opacity-55'} ${className ?? ''}`}
    >
      {busy ? <LoaderCircle aria-hidden className="size-4 animate-spin" /> : icon}
      {children}
    </button>
  )
}

/** A button that is only an icon: it needs a name. */
export function IconButton({ label, className, children, ...rest }: ComponentProps<'button'> & { label: string }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={`inline-flex size-8 items-center justify-center rounded-lg text-ink-2 transition-colors hover:bg-hover hover:text-ink ${className ?? ''}`}
    >
      {children}
    </button>
  )
}
