import { Autocomplete } from '@base-ui/react/autocomplete'
import { Dialog } from '@base-ui/react/dialog'
import { useQuery } from '@tanstack/react-query'
import { useParams, useRouter } from '@tanstack/react-router'
import { CornerDownLeft, Search } from 'lucide-react'
import { groupsQuery } from '@/api'
import { homeProject, useMe, type Permission } from '@/session'
import { commandsOf, type Command, type Section } from './commands'
import { usePalette } from './palette'

/** Every page and group by its name, from the keyboard. */
export function CommandPalette() {
  const [open, onOpenChange] = usePalette()
  return (
    <Dialog.Root open={open} onOpenChange={onOpenChange}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Popup
          aria-label="Go to"
          className="fixed top-[12vh] left-1/2 z-50 w-[36rem] max-w-[calc(100vw-2rem)] -translate-x-1/2 overflow-hidden rounded-2xl border border-line bg-surface shadow-high"
        >
          {open && <Palette onDone={() => onOpenChange(false)} />}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Palette({ onDone }: { onDone: () => void }) {
  const me = useMe()
  const params = useParams({ strict: false })
  const projectId = params.projectId ?? homeProject(me.projects)?.id
  const router = useRouter()
  const groups = useQuery({ ...groupsQuery(projectId ?? ''), enabled: projectId !== undefined })
  const may = (permission: Permission) => me.permissions.includes(permission)
  const sections = commandsOf({ projects: me.projects, groups: groups.data ?? [], projectId, may })
  const run = (command: Command) => {
    onDone()
    router.history.push(command.path)
  }
  return (
    <Autocomplete.Root items={sections} inline open autoHighlight="always" itemToStringValue={labelOf}>
      <div className="flex items-center gap-3 border-b border-line px-4">
        <Search aria-hidden className="size-4 shrink-0 text-ink-3" />
        <Autocomplete.Input
          aria-label="Page, group or project"
          placeholder="Go to a page, group or project"
          className="h-13 w-full bg-transparent text-[15px] outline-none placeholder:text-ink-3"
        />
      </div>
      <Autocomplete.Empty className="px-4 py-8 text-center text-sm text-ink-3 empty:p-0">
        Nothing has this name.
      </Autocomplete.Empty>
      <Autocomplete.List className="max-h-[min(24rem,60vh)] overflow-y-auto p-2 empty:p-0">
        {(section: Section) => (
          <Autocomplete.Group key={section.value} items={section.items} className="mb-1 last:mb-0">
            <Autocomplete.GroupLabel className="px-2.5 pt-2 pb-1 text-xs text-ink-3">
              {section.value}
            </Autocomplete.GroupLabel>
            <Autocomplete.Collection>
              {(command: Command) => (
                <Autocomplete.Item
                  key={command.path}
                  value={command}
                  onClick={() => run(command)}
                  className="flex h-9 cursor-pointer items-center gap-3 rounded-lg px-2.5 text-sm text-ink-2 data-highlighted:bg-hover data-highlighted:text-ink"
                >
                  <span className="min-w-0 flex-1 truncate">{command.label}</span>
                  {command.note && <span className="truncate text-[13px] text-ink-3">{command.note}</span>}
                  <CornerDownLeft
                    aria-hidden
                    className="size-3.5 text-ink-3 in-data-highlighted:opacity-100 opacity-0"
                  />
                </Autocomplete.Item>
              )}
            </Autocomplete.Collection>
          </Autocomplete.Group>
        )}
      </Autocomplete.List>
    </Autocomplete.Root>
  )
}

function labelOf(command: Command): string {
  return command.words ? `${command.label} ${command.words}` : command.label
}
