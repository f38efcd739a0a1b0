import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, problemOf } from '@/api'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { Notice, ProblemNotice } from '@/ui/Notice'
import { Section } from '@/ui/Surface'

const LENGTH_MIN = 10

export function PasswordSection() {
  const queries = useQueryClient()
  const [password, setPassword] = useState('')
  const [next, setNext] = useState('')
  const change = useMutation({
    mutationFn: () => api.changePassword({ password, new_password: next }),
    onSuccess: () => {
      setPassword('')
      setNext('')
      void queries.invalidateQueries({ queryKey: keys.sessions })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (password && next.length >= LENGTH_MIN) change.mutate()
  }
  const isWrong = change.error !== null && problemOf(change.error).code === 'credentials_invalid'
  const wrongNext = fieldMessage(change.error, 'new_password')
  return (
    <Section title="Password" description="Changing it ends your other sessions.">
      <form onSubmit={submit} className="max-w-sm space-y-4">
        <TextField
          label="Present password"
          type="password"
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.target.value)}
          error={isWrong ? 'This is not your password.' : undefined}
        />
        <TextField
          label="New password"
          type="password"
          autoComplete="new-password"
          hint={`At least ${LENGTH_MIN} characters, of any kind.`}
          value={next}
          onChange={(event) => setNext(event.target.value)}
          error={wrongNext}
        />
        {change.error && !isWrong && !wrongNext && <ProblemNotice error={change.error} />}
        {change.isSuccess && <Notice tone="good" title="Your password is changed." announce />}
        <Button
          type="submit"
          variant="secondary"
          busy={change.isPending}
          disabledReason={next.length < LENGTH_MIN ? `The new one needs ${LENGTH_MIN} characters.` : undefined}
        >
          Change password
        </Button>
        <p className="text-[13px] text-ink-3">
          You have none, or forgot it?{' '}
          <Link to="/forgot-password" className="rounded underline underline-offset-4 hover:text-ink">
            Set one by mail
          </Link>
        </p>
      </form>
    </Section>
  )
}
