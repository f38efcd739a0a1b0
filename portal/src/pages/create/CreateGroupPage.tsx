import { zodResolver } from '@hookform/resolvers/zod'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useForm } from 'react-hook-form'
import { api, fieldMessage, groupQuery, keys, problemOf, type Sla } from '@/api'
import { Steps } from '@/pages/create/Steps'
import { PageHeader } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { adoptSla } from './adoptSla'
import { GroupFields } from './GroupFields'
import { QuoteBar } from './QuoteBar'
import { QuotePanel } from './QuotePanel'
import { DEFAULTS, groupSchema, slaOf, type GroupValues } from './slaForm'
import { refusalOf, useLiveQuote } from './useLiveQuote'

const route = getRouteApi('/app/projects/$projectId/groups/new')

export function CreateGroupPage() {
  usePageTitle('New group')
  const { projectId } = route.useParams()
  const { welcome } = route.useSearch()
  const form = useForm<GroupValues>({ resolver: zodResolver(groupSchema), defaultValues: DEFAULTS, mode: 'onTouched' })
  const sla = slaOf(form.watch())
  const { quote, settled } = useLiveQuote(sla)
  const creation = useCreation(projectId, welcome ?? false)
  // A refusal of the creation itself (another group took the capacity meanwhile) outweighs the older quote.
  const refusedNow = refusalOf(creation.error)

  const adopt = (fits: Sla) => {
    creation.reset()
    adoptSla(form, fits)
  }
  const submit = form.handleSubmit((values) => creation.mutate(values))
  return (
    <>
      {welcome && <Steps current={1} />}
      <PageHeader
        title={welcome ? 'Create your first group' : 'New group'}
        description="Say what the log must do. The price, and whether we can promise it, follow as you type."
      />
      <form
        noValidate
        onSubmit={submit}
        onChange={() => creation.isError && creation.reset()}
        className="grid grid-cols-1 items-start gap-8 lg:grid-cols-[minmax(0,1fr)_21rem]"
      >
        <GroupFields
          form={form}
          serverMessage={(field) => nameTaken(creation.error, field) ?? fieldMessage(creation.error, field)}
        />
        <QuotePanel
          sla={sla}
          quote={quote}
          settled={settled}
          refusal={refusedNow ?? quote.data?.refusal ?? null}
          error={refusedNow || nameTaken(creation.error, 'name') ? null : creation.error}
          action={{ label: 'Create group', busy: creation.isPending || creation.isSuccess }}
          note="Billed by the second. Delete it at any time."
          presentMonthlyMicros={null}
          onAdopt={adopt}
        />
        <QuoteBar quote={quote.data} settled={settled} refused={(refusedNow ?? quote.data?.refusal ?? null) !== null} />
      </form>
    </>
  )
}

function useCreation(projectId: string, welcome: boolean) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  return useMutation({
    mutationFn: (values: GroupValues) => api.createGroup(projectId, { ...values, name: values.name.trim() }),
    onSuccess: async (group) => {
      queries.setQueryData(groupQuery(group.id).queryKey, group)
      void queries.invalidateQueries({ queryKey: keys.groups(projectId) })
      void queries.invalidateQueries({ queryKey: keys.quotas })
      await navigate({
        to: '/projects/$projectId/groups/$groupId/connect',
        params: { projectId, groupId: group.id },
        search: welcome ? { welcome: true } : {},
      })
    },
  })
}

function nameTaken(error: unknown, field: string): string | undefined {
  if (!error || field !== 'name') return undefined
  const problem = problemOf(error)
  return problem.code === 'name_taken' ? problem.detail : undefined
}
