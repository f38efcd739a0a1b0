import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, keys, statusQuery, type NewIncident, type StatusIncident } from '@/api'
import { Button } from '@/ui/Button'
import { Checks } from '@/ui/Checks'
import { Dialog } from '@/ui/Dialog'
import { SelectField, TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

type Component = NewIncident['components'][number]
type Phase = NonNullable<NewIncident['phase']>

const COMPONENTS: readonly { value: Component; label: string; about: string }[] = [
  { value: 'data_plane', label: 'Data plane', about: 'Appends and reads of groups.' },
  { value: 'admission', label: 'Admission', about: 'New groups and resizes.' },
  { value: 'api', label: 'API', about: 'The API and the portal.' },
  { value: 'usage', label: 'Usage', about: 'Metrics, usage and SLA reports.' },
]
const PHASES: readonly Phase[] = ['investigating', 'identified', 'monitoring', 'resolved']
const EMPTY = {
  title: '',
  components: [] as Component[],
  impact: 'degraded' as NewIncident['impact'],
  phase: 'investigating' as Phase,
  message: '',
}

interface Props {
  /** `new`: another incident; null: the dialog is closed. */
  about: StatusIncident | 'new' | null
  onClose: () => void
}

export function IncidentDialog({ about, onClose }: Props) {
  const queries = useQueryClient()
  const [form, setForm] = useState(EMPTY)
  const known = about !== null && about !== 'new' ? about : null
  const close = () => {
    setForm(EMPTY)
    writing.reset()
    onClose()
  }
  const writing = useMutation({
    mutationFn: () => {
      const { title, components, impact, phase, message } = form
      return known
        ? api.updateIncident(known.id, { phase, message: message.trim() })
        : api.openIncident({ title: title.trim(), components, impact, phase, message: message.trim() })
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: statusQuery.queryKey })
      await queries.invalidateQueries({ queryKey: keys.operator })
      close()
    },
  })
  const lacking =
    !form.message.trim() || (!known && (!form.title.trim() || form.components.length === 0))
      ? 'Fill in all fields first.'
      : undefined
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!lacking) writing.mutate()
  }
  return (
    <Dialog
      open={about !== null}
      onOpenChange={(next) => !next && close()}
      title={known ? known.title : 'New incident'}
      description="Customers read it as you write it."
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        {!known && (
          <>
            <TextField
              label="Title"
              placeholder="Appends are delayed"
              value={form.title}
              onChange={(event) => setForm({ ...form, title: event.target.value })}
              autoComplete="off"
            />
            <Checks
              legend="Concerns"
              value={form.components}
              options={COMPONENTS}
              onChange={(components) => setForm({ ...form, components })}
            />
            <SelectField
              label="Impact"
              value={form.impact}
              onChange={(event) => setForm({ ...form, impact: event.target.value as NewIncident['impact'] })}
            >
              <option value="degraded">Degraded</option>
              <option value="outage">Outage</option>
            </SelectField>
          </>
        )}
        <SelectField
          label="Phase"
          value={form.phase}
          onChange={(event) => setForm({ ...form, phase: event.target.value as Phase })}
        >
          {PHASES.map((phase) => (
            <option key={phase} value={phase}>
              {phase.charAt(0).toUpperCase() + phase.slice(1)}
            </option>
          ))}
        </SelectField>
        <TextField
          label="Message"
          hint="What customers notice, and what you do about it."
          value={form.message}
          onChange={(event) => setForm({ ...form, message: event.target.value })}
          autoComplete="off"
        />
        {writing.error && <ProblemNotice error={writing.error} />}
        <div className="flex justify-end">
          <Button type="submit" busy={writing.isPending} disabledReason={lacking}>
            {known ? 'Publish update' : 'Publish incident'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
