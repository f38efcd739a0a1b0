import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ChevronsUpDown, Plus } from 'lucide-react'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type Project } from '@/api'
import { useMay, useMe } from '@/session'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { Menu, MenuItem, MenuRadio, MenuSeparator } from '@/ui/Menu'
import { ProblemNotice } from '@/ui/Notice'

export function ProjectSwitcher({ project }: { project: Project }) {
  const { projects } = useMe()
  const mayCreate = useMay('administer')
  const navigate = useNavigate()
  const [creating, setCreating] = useState(false)
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
            <MenuItem icon={<Plus aria-hidden className="size-4 text-ink-3" />} onClick={() => setCreating(true)}>
              New project
            </MenuItem>
          </>
        )}
      </Menu>
      <NewProject open={creating} onOpenChange={setCreating} onCreated={open} />
    </>
  )
}

interface NewProjectProps {
  open: boolean
  onOpenChange: (open: boolean) => void
  onCreated: (projectId: string) => void
}

function NewProject({ open, onOpenChange, onCreated }: NewProjectProps) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const creation = useMutation({
    mutationFn: api.createProject,
    onSuccess: async (project) => {
      await queries.invalidateQueries({ queryKey: keys.me })
      onOpenChange(false)
      setName('')
      onCreated(project.id)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim()) creation.mutate(name.trim())
  }
  const wrongName = creation.error ? fieldMessage(creation.error, 'name') : undefined
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        creation.reset()
        onOpenChange(next)
      }}
      title="New project"
      description="A project keeps its groups and API keys apart from others: production from staging, say."
    >
      <form onSubmit={submit} className="space-y-4">
        <TextField
          label="Name"
          value={name}
          onChange={(event) => setName(event.target.value)}
          error={wrongName}
          maxLength={100}
          autoComplete="off"
          required
        />
        {creation.error && !wrongName && <ProblemNotice error={creation.error} />}
        <div className="flex justify-end">
          <Button type="submit" busy={creation.isPending}>
            Create project
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
