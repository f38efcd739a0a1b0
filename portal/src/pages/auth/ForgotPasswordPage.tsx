import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage } from '@/api'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { Notice, ProblemNotice } from '@/ui/Notice'
import { usePageTitle } from '@/ui/title'
import { AuthFrame } from './AuthFrame'

export function ForgotPasswordPage() {
  usePageTitle('Forgot password')
  const [email, setEmail] = useState('')
  const request = useMutation({ mutationFn: api.requestPasswordReset })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (email.trim()) request.mutate(email.trim())
  }
  const wrongEmail = fieldMessage(request.error, 'email')
  return (
    <AuthFrame
      title="Set a new password"
      lead="We mail you a link with which you set one."
      footer={
        <Link to="/login" className="font-medium text-accent-text underline underline-offset-4">
          Back to the log-in
        </Link>
      }
    >
      {request.isSuccess ? (
        <Notice tone="good" title="Look into your mail" announce>
          If {email} is the verified address of an account, a link is on its way. It works for an hour.
        </Notice>
      ) : (
        <form noValidate onSubmit={submit} className="space-y-4">
          <TextField
            label="E-mail"
            type="email"
            autoComplete="email"
            value={email}
            onChange={(event) => setEmail(event.target.value)}
            error={wrongEmail && 'Enter the e-mail address of your account.'}
          />
          {request.error && !wrongEmail && <ProblemNotice error={request.error} />}
          <Button type="submit" busy={request.isPending} className="mt-2 w-full">
            Mail me the link
          </Button>
        </form>
      )}
    </AuthFrame>
  )
}
