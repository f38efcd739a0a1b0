import { Link, useRouter } from '@tanstack/react-router'
import { problemOf } from '@/api'
import { Button, buttonClass } from '@/ui/Button'
import { Mark } from '@/ui/Logo'
import { usePageTitle } from '@/ui/title'

export function NotFoundPage() {
  usePageTitle('Not found')
  return (
    <Centred
      title="There is nothing at this address"
      detail="It may have moved or been deleted, or the link was cut short."
    >
      <Link to="/" className={buttonClass('secondary')}>
        Go to your groups
      </Link>
    </Centred>
  )
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
    <main className="flex min-h-[70dvh] flex-col items-center justify-center px-6 text-center">
      <Mark className="size-9 text-line-strong" />
      <h1 className="mt-6 text-xl font-semibold">{title}</h1>
      <p className="mt-2 mb-6 max-w-md text-sm text-ink-2">{detail}</p>
      {children}
    </main>
  )
}
