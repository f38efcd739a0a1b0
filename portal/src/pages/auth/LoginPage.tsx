import { zodResolver } from '@hookform/resolvers/zod'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useRouter } from '@tanstack/react-router'
import { useState } from 'react'
import { useForm } from 'react-hook-form'
import { z } from 'zod'
import { api, problemOf } from '@/api'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { Notice, ProblemNotice } from '@/ui/Notice'
import { usePageTitle } from '@/ui/title'
import { AuthFrame } from './AuthFrame'
import { PasskeyLogin } from './PasskeyLogin'
import { ProviderButtons } from './provider/ProviderButtons'
import { safeNext } from './safeNext'

const schema = z.object({
  email: z.email('Enter the e-mail address that you signed up with.'),
  password: z.string().min(1, 'Enter your password.'),
  code: z.string(),
})
const route = getRouteApi('/login')
/** Codes that a field tells of. */
const KNOWN = new Set(['credentials_invalid', 'second_factor_required', 'second_factor_wrong'])

export function LoginPage() {
  usePageTitle('Log in')
  const { next, expired } = route.useSearch()
  const router = useRouter()
  const queries = useQueryClient()
  const form = useForm({ resolver: zodResolver(schema), defaultValues: { email: '', password: '', code: '' } })
  const goOn = () => {
    queries.clear()
    router.history.push(safeNext(next))
  }
  const login = useMutation({ mutationFn: api.logIn, onSuccess: goOn })
  const { errors } = form.formState
  const code = login.error === null ? '' : problemOf(login.error).code
  const wrong = code === 'credentials_invalid'
  const [asksCode, setAsksCode] = useState(false)
  if (code === 'second_factor_required' && !asksCode) setAsksCode(true)
  const submit = form.handleSubmit(({ email, password, code: typed }) =>
    login.mutate(asksCode && typed ? { email, password, code: typed } : { email, password }),
  )
  return (
    <AuthFrame
      title="Welcome back"
      lead="Log in to your groups, SLA reports and invoices."
      footer={
        <>
          New here?{' '}
          <Link to="/signup" className="font-medium text-accent-text underline underline-offset-4">
            Create an account
          </Link>
        </>
      }
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        {expired && !login.error && (
          <Notice tone="info" title="Your session is over">
            Log in and you are back where you were.
          </Notice>
        )}
        <TextField
          label="E-mail"
          type="email"
          autoComplete="email"
          {...form.register('email')}
          error={errors.email?.message}
        />
        <TextField
          label="Password"
          type="password"
          autoComplete="current-password"
          {...form.register('password')}
          error={
            wrong
              ? 'E-mail and password do not match an account. Check both for typing errors.'
              : errors.password?.message
          }
        />
        {asksCode && (
          <TextField
            label="Code of your authenticator"
            inputMode="numeric"
            autoComplete="one-time-code"
            hint="Or one of your recovery codes."
            {...form.register('code')}
            error={code === 'second_factor_wrong' ? 'This code does not work. Each works once.' : undefined}
          />
        )}
        {login.error && !KNOWN.has(code) && <ProblemNotice error={login.error} />}
        <Button type="submit" busy={login.isPending} className="mt-2 w-full">
          Log in
        </Button>
        <PasskeyLogin onLoggedIn={goOn} />
        <ProviderButtons verb="Log in" errand={() => ({ purpose: 'log_in', next: safeNext(next) })} />
        <p className="text-center text-sm">
          <Link to="/forgot-password" className="rounded text-ink-2 underline underline-offset-4 hover:text-ink">
            Forgot your password?
          </Link>
        </p>
      </form>
    </AuthFrame>
  )
}
