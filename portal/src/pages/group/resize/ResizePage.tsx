import { zodResolver } from '@hookform/resolvers/zod'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useForm } from 'react-hook-form'
import { api, fieldMessage, groupQuery, keys, type Group, type Resize, type Sla } from '@/api'
import { adoptSla } from '@/pages/create/adoptSla'
import { QuoteBar } from '@/pages/create/QuoteBar'
import { QuotePanel } from '@/pages/create/QuotePanel'
import { RateField } from '@/pages/create/RateField'
import { LatencyField, PauseField, ReadsField, RequestSizeField, RetentionField } from '@/pages/create/SlaFields'
import { groupSchema, type GroupValues } from '@/pages/create/slaForm'
import { refusalOf, useLiveQuote } from '@/pages/create/useLiveQuote'
import { useMay } from '@/session'
import { Notice } from '@/ui/Notice'
import { Card } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { useGroup } from '../GroupPage'
import { changesOf, hindranceOf, quotedSla, valuesOf } from './resize'

/** Another SLA for a group, with its price before it is asked for. */
export function ResizePage() {
  const group = useGroup()
  usePageTitle('Resize', group.name)
  const mayManage = useMay('manage')
  const hindrance = mayManage ? hindranceOf(group) : 'Your role does not change groups. Ask a developer or an admin.'
  if (hindrance) {
    return (
      <Notice tone="info" title="The group cannot be resized now">
        {hindrance}
      </Notice>
    )
  }
  return <Form key={group.id} group={group} />
}

function Form({ group }: { group: Group }) {
  const form = useForm<GroupValues>({
    resolver: zodResolver(groupSchema),
    defaultValues: valuesOf(group),
    mode: 'onTouched',
  })
  const values = form.watch()
  const sla = quotedSla(group, values)
  const { quote, settled } = useLiveQuote(sla)
  const resize = useResize(group)
  // Another group may take the room between quote and resize.
  const refused = refusalOf(resize.error)
  const changes = changesOf(group, values)
  const isSame = Object.keys(changes).length === 0
  const { errors } = form.formState
  const wrong = (field: keyof GroupValues) => errors[field]?.message ?? fieldMessage(resize.error, field)
  const adopt = (fits: Sla) => {
    resize.reset()
    adoptSla(form, fits)
  }
  return (
    <form
      noValidate
      onSubmit={form.handleSubmit(() => resize.mutate(changes))}
      onChange={() => resize.isError && resize.reset()}
      className="grid grid-cols-1 items-start gap-8 lg:grid-cols-[minmax(0,1fr)_21rem]"
    >
      <Card className="space-y-7 p-5 sm:p-7">
        <div>
          <h2 className="text-[15px] font-semibold">Resize</h2>
          <p className="mt-0.5 max-w-prose text-[13px] text-ink-3">
            Appends go on meanwhile. Durability, replication degree and region are for good: for others make another
            group.
          </p>
        </div>
        <RateField form={form} error={wrong('rate_per_s')} />
        <RequestSizeField form={form} error={wrong('request_size_bytes')} />
        <LatencyField form={form} />
        <div className="grid gap-5 sm:grid-cols-2">
          <ReadsField form={form} error={wrong('read_rate_per_s')} />
          <PauseField form={form} />
          <RetentionField form={form} />
        </div>
        {values.retention_bytes < group.sla.retention_bytes && (
          <Notice tone="warn" title="Older entries are discarded">
            The log keeps its newest entries up to the smaller size. The others are gone for good as soon as the resize
            is done.
          </Notice>
        )}
      </Card>
      <QuotePanel
        sla={sla}
        quote={quote}
        settled={settled}
        refusal={refused ?? quote.data?.refusal ?? null}
        error={refused ? null : resize.error}
        action={{
          label: 'Resize group',
          busy: resize.isPending || resize.isSuccess,
          hindrance: isSame ? 'Change something first.' : undefined,
        }}
        note="The new price begins with the new SLA."
        presentMonthlyMicros={group.price.monthly_micros}
        onAdopt={adopt}
      />
      <QuoteBar quote={quote.data} settled={settled} refused={(refused ?? quote.data?.refusal ?? null) !== null} />
    </form>
  )
}

function useResize(group: Group) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  return useMutation({
    mutationFn: (changes: Resize) => api.resizeGroup(group.id, changes),
    onSuccess: async (resized) => {
      queries.setQueryData(groupQuery(group.id).queryKey, resized)
      for (const queryKey of [keys.group(group.id), keys.groups(group.project_id), keys.quotas, keys.spend]) {
        void queries.invalidateQueries({ queryKey })
      }
      await navigate({
        to: '/projects/$projectId/groups/$groupId/settings',
        params: { projectId: group.project_id, groupId: group.id },
      })
    },
  })
}
