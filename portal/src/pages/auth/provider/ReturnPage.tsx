import { skipToken, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useRouter } from '@tanstack/react-router'
import { useEffect, useState, type ReactNode } from 'react'
import { api, endErrand, errandOf, problemOf, type Errand, type ProviderAnswer, type ProviderLoginOutcome } from '@/api'
import { buttonClass } from '@/ui/Button'
import { Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { AuthFrame } from '../AuthFrame'
import { safeNext } from '../safeNext'
import { OrganizationForm } from './OrganizationForm'
import { SecondFactorForm } from './SecondFactorForm'

const route = getRouteApi('/login/return')

/** The page to which identity providers send the browser back. */
export function ReturnPage() {
  usePageTitle('Log in')
  const { code, state, error } = route.useSearch()
  const [errand] = useState(errandOf)
  if (error !== undefined || code === undefined || state === undefined || errand === null)
    return (
      <Failed errand={errand} title={error === 'access_denied' ? 'You said no there' : 'This did not work'}>
        {errand === null
          ? 'It did not begin in this tab, or it is finished already.'
          : 'The provider sent you back without an answer. Nothing has changed.'}
      </Failed>
    )
  return <Answered errand={errand} answer={{ code, state }} />
}

function Answered({ errand, answer }: { errand: Errand; answer: ProviderAnswer }) {
  const router = useRouter()
  const queries = useQueryClient()
  // A query rather than a mutation: an answer is good once, and a page may be drawn twice.
  const result = useQuery({
    queryKey: ['provider-answer', answer.state],
    queryFn: answer.state ? () => take(errand, answer) : skipToken,
    retry: false,
    staleTime: Infinity,
  })
  const goOn = () => {
    endErrand()
    queries.clear()
    router.history.replace(errand.purpose === 'join' ? '/' : safeNext(errand.next))
  }
  const isDone = result.data === 'done' || result.data?.outcome === 'logged_in'
  useEffect(() => {
    if (isDone) goOn()
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once
  }, [isDone])
  if (result.error)
    return (
      <Failed errand={errand} title={problemOf(result.error).title}>
        {problemOf(result.error).detail}
      </Failed>
    )
  if (result.data === undefined || isDone || result.data === 'done')
    return (
      <Frame title={`Back from ${errand.provider}`} lead="One moment.">
        <Skeleton className="h-10 w-full" />
      </Frame>
    )
  const { outcome, email } = result.data
  if (outcome === 'second_factor_required')
    return (
      <Frame title="One more step" lead={`Your account wants a code at each log-in, with ${errand.provider}, too.`}>
        <SecondFactorForm answer={answer} onLoggedIn={goOn} />
      </Frame>
    )
  if (outcome === 'account_needed')
    return (
      <Frame title="Create your account" lead={`With ${email}, as ${errand.provider} knows you.`}>
        <OrganizationForm />
      </Frame>
    )
  return (
    <Failed errand={errand} title={`${email} has an account`}>
      Log in to it as before. Then connect {errand.provider} under “Your account”, and it logs you in from then on.
    </Failed>
  )
}

async function take(errand: Errand, answer: ProviderAnswer): Promise<ProviderLoginOutcome | 'done'> {
  if (errand.purpose === 'log_in') return api.logInWithProvider(answer)
  if (errand.purpose === 'join') await api.acceptInvitationAsNew({ token: errand.next, identity: answer })
  else {
    await api.me(new AbortController().signal) // brings the token for changes
    await (errand.purpose === 'connect' ? api.addIdentity(answer) : api.confirmPerson({ identity: answer }))
  }
  return 'done'
}

function Failed({ errand, title, children }: { errand: Errand | null; title: string; children: ReactNode }) {
  const isIn = errand?.purpose === 'connect' || errand?.purpose === 'confirm'
  return (
    <Frame title={title} lead={children}>
      <Link to={isIn ? '/account' : '/login'} className={buttonClass('secondary')}>
        {isIn ? 'Back to your account' : 'Go to the log-in'}
      </Link>
    </Frame>
  )
}

function Frame({ title, lead, children }: { title: string; lead: ReactNode; children: ReactNode }) {
  return (
    <AuthFrame title={title} lead={lead} footer="">
      {children}
    </AuthFrame>
  )
}
