import { zodResolver } from '@hookform/resolvers/zod'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useForm } from 'react-hook-form'
import { z } from 'zod'
import { api, fieldMessage, problemOf } from '@/api'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { usePageTitle } from '@/ui/title'
import { AuthFrame } from './AuthFrame'
import { ProviderButtons } from './provider/ProviderButtons'

const PASSWORD_LENGTH_MIN = 10
const schema = z.object({
  email: z.email('Enter an e-mail address, like name@company.com.'),
  password: z.string().min(PASSWORD_LENGTH_MIN, `Use at least ${PASSWORD_LENGTH_MIN} characters.`),
  organization: z
    .string()
    .trim()
    .min(1, 'Enter the name of your company or team.')
    .max(100, 'Use at most 100 characters.'),
})
type Values = z.infer<typeof schema>

export function SignUpPage() {
  usePageTitle('Sign up')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const form = useForm<Values>({
    resolver: zodResolver(schema),
    defaultValues: { email: '', password: '', organization: '' },
  })
  const signUp = useMutation({
    mutationFn: api.signUp,
    onSuccess: async ({ project }) => {
      queries.clear()
      await navigate({
        to: '/projects/$projectId/groups/new',
        params: { projectId: project.id },
        search: { welcome: true },
      })
    },
  })
  const { errors } = form.formState
  const wrong = (field: keyof Values) => errors[field]?.message ?? fieldMessage(signUp.error, field)
  const placed = (['email', 'password', 'organization'] as const).some((field) => fieldMessage(signUp.error, field))
  const taken = signUp.error !== null && problemOf(signUp.error).code === 'email_taken'
  return (
    <AuthFrame
      title="Create your account"
      lead="From here to your first committed entry in about three minutes."
      footer={
        <>
          Have an account?{' '}
          <Link to="/login" className="font-medium text-accent-text underline underline-offset-4">
            Log in
          </Link>
        </>
      }
    >
      <form noValidate onSubmit={form.handleSubmit((values) => signUp.mutate(values))} className="space-y-4">
        <TextField
          label="E-mail"
          type="email"
          autoComplete="email"
          {...form.register('email')}
          error={taken ? 'There is an account with this e-mail. Log in instead.' : wrong('email')}
        />
        <TextField
          label="Password"
          type="password"
          autoComplete="new-password"
          hint={`At least ${PASSWORD_LENGTH_MIN} characters. A few unrelated words make a good one.`}
          {...form.register('password')}
          error={wrong('password')}
        />
        <TextField
          label="Organization"
          autoComplete="organization"
          hint="Your company or team; it is on the invoices."
          {...form.register('organization')}
          error={wrong('organization')}
        />
        {signUp.error && !placed && !taken && <ProblemNotice error={signUp.error} />}
        <Button type="submit" busy={signUp.isPending} className="mt-2 w-full">
          Create account
        </Button>
        <ProviderButtons verb="Sign up" errand={() => ({ purpose: 'log_in', next: '/' })} />
      </form>
    </AuthFrame>
  )
}
