import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ChevronsUpDown, Pencil, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, keys, type Project } from '@/api'
import { useMay, useMe } from '@/session'
import { Menu, MenuItem, MenuRadio, MenuSeparator } from '@/ui/Menu'
import { Rename } from '@/ui/Rename'
import { DeleteProject } from './DeleteProject'
import { NewProject } from './NewProject'

export function ProjectSwitcher({ project }: { project: Project }) {
  const { projects } = useMe()
  const mayCreate = useMay('administer')
  const navigate = useNavigate()
  const [asking, setAsking] = useState<'create' | 'rename' | 'delete' | null>(null)
  const queries = useQueryClient()
  const rename = async (name: string) => {
    await api.renameProject(project.id, name)
    await queries.invalidateQueries({ queryKey: keys.me })
  }
  const open = (projectId: string) => void navigate({ to: '/projects/$projectId/groups', params: { projectId } })
  return (
    <>
      <Menu
        trigger={
          <button
            type="button"
            aria-label={`Project ${project.name}, switch project`}
            className="flex h-11 w-full items-center gap-2 rounded-lg border border-line bg-surface px-3 text-left text-sm transition-colors hover:border-line-strong"
          >
            <span className="min-w-0 flex-1">
              <span className="block text-[11px] leading-tight text-ink-3">Project</span>
              <span className="block truncate leading-tight font-medium">{project.name}</span>
            </span>
            <ChevronsUpDown aria-hidden className="size-4 shrink-0 text-ink-3" />
          </button>
        }
      >
        <MenuRadio
          label="Projects"
          value={project.id}
          options={projects.map(({ id, name }) => ({ value: id, label: name }))}
          onChange={open}
        />
        {mayCreate && (
          <>
            <MenuSeparator />
            <MenuItem icon={<Plus aria-hidden className="size-4 text-ink-3" />} onClick={() => setAsking('create')}>
              New project
            </MenuItem>
            <MenuItem icon={<Pencil aria-hidden className="size-4 text-ink-3" />} onClick={() => setAsking('rename')}>
              Rename {project.name}
            </MenuItem>
            <MenuItem icon={<Trash2 aria-hidden className="size-4 text-ink-3" />} onClick={() => setAsking('delete')}>
              Delete {project.name}
            </MenuItem>
          </>
        )}
      </Menu>
      <NewProject open={asking === 'create'} onClose={() => setAsking(null)} onCreated={open} />
      {asking === 'rename' && (
        <Rename
          name={project.name}
          description="Its groups, keys and their use stay."
          rename={rename}
          onClose={() => setAsking(null)}
        />
      )}
      <DeleteProject project={project} open={asking === 'delete'} onClose={() => setAsking(null)} />
    </>
  )
}
