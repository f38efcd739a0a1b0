import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { api, keys } from '@/api'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { Logo } from '@/ui/Logo'
import { ProblemNotice } from '@/ui/Notice'
import { usePageTitle } from '@/ui/title'
import { beginOperator, endOperator } from './session'

export function OperatorLoginPage() {
  usePageTitle('Operators')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const [token, setToken] = useState('')
  const login = useMutation({
    mutationFn: async () => {
      beginOperator(token.trim())
      return api.getOperator()
    },
    onSuccess: async () => {
      queries.removeQueries({ queryKey: keys.operator })
      await navigate({ to: '/operator' })
    },
    onError: endOperator,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (token.trim()) login.mutate()
  }
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-sm flex-col justify-center px-5 py-12">
      <Logo />
      <h1 className="mt-8 text-[26px] leading-tight font-semibold">Operators</h1>
      <p className="mt-2 mb-8 text-sm text-ink-2">
        For those who run the fleet. Make a token on the API’s machine:{' '}
        <code className="font-mono text-[13px]">quorate-api operator-session --name you@example.com</code>
      </p>
      <form noValidate onSubmit={submit} className="space-y-4">
        <TextField
          label="Token"
          type="password"
          autoComplete="off"
          placeholder="qos_…"
          hint="This tab forgets it when you close it."
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        {login.error && <ProblemNotice error={login.error} />}
        <Button
          type="submit"
          className="w-full"
          busy={login.isPending}
          disabledReason={token.trim() ? undefined : 'Paste a token first.'}
        >
          Open the console
        </Button>
      </form>
    </main>
  )
}
