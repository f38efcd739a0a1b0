import { useQuery } from '@tanstack/react-query'
import { Link, useRouter } from '@tanstack/react-router'
import { meQuery, problemOf } from '@/api'
import { Shell } from '@/layout/Shell'
import { Button, buttonClass } from '@/ui/Button'
import { Mark } from '@/ui/Logo'
import { usePageTitle } from '@/ui/title'

/** With the navigation for who is logged in, and with ways on for everybody. */
export function NotFoundPage() {
  usePageTitle('Not found')
  const me = useQuery({ ...meQuery, retry: false })
  const page = (
    <Centred
      title="There is nothing at this address"
      detail="It may have moved or been deleted, or the link was cut short."
    >
      <div className="flex flex-wrap justify-center gap-2">
        <Link to={me.data ? '/' : '/login'} className={buttonClass('secondary')}>
          {me.data ? 'Go to your groups' : 'Log in'}
        </Link>
        <Link to="/docs" className={buttonClass('secondary')}>
          Documentation
        </Link>
      </div>
    </Centred>
  )
  if (me.isPending) return null
  return me.data ? <Shell>{page}</Shell> : page
}

/** Shown when the session cannot be read, or a page failed unexpectedly. */
export function CrashPage({ error }: { error: unknown }) {
  usePageTitle('Error')
  const router = useRouter()
  const problem = problemOf(error)
  return (
    <Centred title={problem.title} detail={problem.detail}>
      <Button variant="secondary" onClick={() => void router.invalidate()}>
        Try again
      </Button>
    </Centred>
  )
}

function Centred({ title, detail, children }: { title: string; detail: string; children: React.ReactNode }) {
  return (
    <div className="flex min-h-[70dvh] flex-col items-center justify-center px-6 text-center">
      <Mark className="size-9 text-line-strong" />
      <h1 className="mt-6 text-xl font-semibold">{title}</h1>
      <p className="mt-2 mb-6 max-w-md text-sm text-ink-2">{detail}</p>
      {children}
    </div>
  )
}
