import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage } from '@/api'
import { Button, buttonClass } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { Notice, ProblemNotice } from '@/ui/Notice'
import { usePageTitle } from '@/ui/title'
import { AuthFrame } from './AuthFrame'
import { linkSecret } from './linkSecret'

export function ResetPasswordPage() {
  usePageTitle('New password')
  const [token] = useState(() => linkSecret(window.location.hash))
  const [password, setPassword] = useState('')
  const reset = useMutation({ mutationFn: () => api.resetPassword({ token, password }) })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (password) reset.mutate()
  }
  const wrongPassword = fieldMessage(reset.error, 'password')
  return (
    <AuthFrame
      title="Your new password"
      lead="It ends all sessions of your account."
      footer={
        <Link to="/forgot-password" className="font-medium text-accent-text underline underline-offset-4">
          Request another link
        </Link>
      }
    >
      {reset.isSuccess ? (
        <Notice
          tone="good"
          title="Your password is set"
          announce
          action={
            <Link to="/login" className={buttonClass()}>
              Log in
            </Link>
          }
        />
      ) : token ? (
        <form noValidate onSubmit={submit} className="space-y-4">
          <TextField
            label="New password"
            type="password"
            autoComplete="new-password"
            hint="At least 10 characters, of any kind."
            value={password}
            onChange={(event) => setPassword(event.target.value)}
            error={wrongPassword && 'Use at least 10 characters.'}
          />
          {reset.error && !wrongPassword && <ProblemNotice error={reset.error} />}
          <Button type="submit" busy={reset.isPending} className="mt-2 w-full">
            Set the password
          </Button>
        </form>
      ) : (
        <Notice tone="warn" title="The link was cut short">
          Open it as it stands in the mail, to its end, or request another one.
        </Notice>
      )}
    </AuthFrame>
  )
}
