import { useQueryClient } from '@tanstack/react-query'
import { Link, useRouter } from '@tanstack/react-router'
import { useEffect } from 'react'
import { AuthFrame } from '@/pages/auth/AuthFrame'
import { buttonClass } from '@/ui/Button'
import { usePageTitle } from '@/ui/title'
import { beginView } from './view'

const TOKEN = /^#(qv_[\w.-]+)$/

/** The begin of an operator's look at an organization, with its token behind `#`. */
export function ViewPage() {
  usePageTitle('View')
  const queries = useQueryClient()
  const router = useRouter()
  const token = TOKEN.exec(window.location.hash)?.[1]
  useEffect(() => {
    if (token === undefined) return
    beginView(token)
    queries.clear()
    router.history.replace('/')
  }, [token, queries, router])
  return (
    <AuthFrame
      title={token === undefined ? 'The link was cut short' : 'One moment'}
      lead="Operators look at an organization from their console."
      footer=""
    >
      {token === undefined && (
        <Link to="/operator/organizations" className={buttonClass('secondary')}>
          Go to the console
        </Link>
      )}
    </AuthFrame>
  )
}
