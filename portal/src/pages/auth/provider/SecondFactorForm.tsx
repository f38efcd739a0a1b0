import { useMutation } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, problemOf, type ProviderAnswer } from '@/api'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

export function SecondFactorForm({ answer, onLoggedIn }: { answer: ProviderAnswer; onLoggedIn: () => void }) {
  const [typed, setTyped] = useState('')
  const login = useMutation({
    mutationFn: () => api.logInWithProvider({ ...answer, second_factor: typed }),
    onSuccess: onLoggedIn,
  })
  const isWrong = login.error !== null && problemOf(login.error).code === 'second_factor_wrong'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (typed) login.mutate()
  }
  return (
    <form noValidate onSubmit={submit} className="space-y-4">
      <TextField
        label="Code of your authenticator"
        inputMode="numeric"
        autoComplete="one-time-code"
        hint="Or one of your recovery codes."
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        error={isWrong ? 'This code does not work. Each works once.' : undefined}
      />
      {login.error && !isWrong && <ProblemNotice error={login.error} />}
      <Button type="submit" busy={login.isPending} className="w-full">
        Log in
      </Button>
    </form>
  )
}
