import { Menu as Base } from '@base-ui/react/menu'
import type { ReactElement, ReactNode } from 'react'

interface Props {
  trigger: ReactElement
  children: ReactNode
  side?: 'top' | 'bottom'
}

export function Menu({ trigger, children, side = 'bottom' }: Props) {
  return (
    <Base.Root modal={false}>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner side={side} align="start" sideOffset={6} className="z-50">
          <Base.Popup className="min-w-(--anchor-width) rounded-xl border border-line bg-surface p-1.5 text-sm shadow-high outline-none transition duration-100 data-ending-style:opacity-0 data-starting-style:opacity-0">
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

const ITEM =
  'flex w-full cursor-pointer items-center gap-2.5 rounded-lg px-2.5 py-2 text-left outline-none data-highlighted:bg-hover'

export function MenuItem({ onClick, icon, children }: { onClick: () => void; icon?: ReactNode; children: ReactNode }) {
  return (
    <Base.Item onClick={onClick} className={ITEM}>
      {icon}
      {children}
    </Base.Item>
  )
}

interface RadioProps<T extends string> {
  label: string
  value: T
  options: readonly { value: T; label: string; icon?: ReactNode }[]
  onChange: (value: T) => void
}

export function MenuRadio<T extends string>({ label, value, options, onChange }: RadioProps<T>) {
  return (
    <Base.Group>
      <Base.GroupLabel className="px-2.5 pt-1.5 pb-1 text-xs text-ink-3">{label}</Base.GroupLabel>
      <Base.RadioGroup value={value} onValueChange={(next) => onChange(next as T)}>
        {options.map((option) => (
          <Base.RadioItem
            key={option.value}
            value={option.value}
            closeOnClick
            className={`${ITEM} data-checked:font-medium`}
          >
            {option.icon}
            <span className="min-w-0 flex-1 truncate">{option.label}</span>
            <Base.RadioItemIndicator className="size-1.5 rounded-full bg-accent" />
          </Base.RadioItem>
        ))}
      </Base.RadioGroup>
    </Base.Group>
  )
}

export function MenuSeparator() {
  return <Base.Separator className="mx-1 my-1.5 h-px bg-line" />
}
