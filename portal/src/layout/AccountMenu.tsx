import { useNavigate } from '@tanstack/react-router'
import { LogOut, Monitor, Moon, Sun, UserRound } from 'lucide-react'
import { useMe, useSignOut, useSwitchOrganization } from '@/session'
import { setTheme, useTheme } from '@/theme'
import { word } from '@/format/words'
import { Menu, MenuItem, MenuRadio, MenuSeparator } from '@/ui/Menu'

const ICON = 'size-4 text-ink-3'
const THEMES = [
  { value: 'system', label: 'Like the system', icon: <Monitor aria-hidden className={ICON} /> },
  { value: 'light', label: 'Light', icon: <Sun aria-hidden className={ICON} /> },
  { value: 'dark', label: 'Dark', icon: <Moon aria-hidden className={ICON} /> },
] as const

export function AccountMenu() {
  const { user, organization, role, memberships } = useMe()
  const navigate = useNavigate()
  const switchTo = useSwitchOrganization()
  const email = user?.email ?? organization.name
  const theme = useTheme()
  const signOut = useSignOut()
  return (
    <Menu
      side="top"
      trigger={
        <button
          type="button"
          aria-label={`Account menu of ${email}`}
          className="mt-3 flex w-full items-center gap-2.5 rounded-lg px-2 py-2 text-left transition-colors hover:bg-hover"
        >
          <span
            aria-hidden
            className="flex size-8 shrink-0 items-center justify-center rounded-full bg-accent-soft text-[13px] font-medium text-accent-text uppercase"
          >
            {email.charAt(0)}
          </span>
          <span className="min-w-0 flex-1 leading-tight">
            <span className="block truncate text-sm font-medium">{organization.name}</span>
            <span className="block truncate text-xs text-ink-3">{email}</span>
          </span>
        </button>
      }
    >
      <div className="px-2.5 pt-1.5 pb-2">
        <p className="truncate font-medium">{email}</p>
        <p className="truncate text-[13px] text-ink-3">
          {word(role ?? 'member')} of {organization.name}
        </p>
      </div>
      <MenuSeparator />
      {memberships.length > 1 && (
        <>
          <MenuRadio
            label="Organization"
            value={organization.id}
            options={memberships.map((each) => ({ value: each.organization_id, label: each.organization_name }))}
            onChange={(id) => void switchTo(id)}
          />
          <MenuSeparator />
        </>
      )}
      <MenuRadio label="Theme" value={theme} options={THEMES} onChange={setTheme} />
      <MenuSeparator />
      <MenuItem icon={<UserRound aria-hidden className={ICON} />} onClick={() => void navigate({ to: '/account' })}>
        Your account
      </MenuItem>
      <MenuItem icon={<LogOut aria-hidden className={ICON} />} onClick={() => void signOut()}>
        Sign out
      </MenuItem>
    </Menu>
  )
}
