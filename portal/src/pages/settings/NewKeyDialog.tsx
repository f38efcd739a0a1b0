import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { SelectField, TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { SecretOnce } from '@/ui/SecretOnce'
import { expiryOf, LIVES } from './keyTimes'
import { namesIn, ORGANIZATION, scopesOf, usualFor, type KeyOwner } from './scopes'
import { ScopesField, type Scopes } from './ScopesField'

interface Props {
  owner: KeyOwner
  title: string
  open: boolean
  onOpenChange: (open: boolean) => void
}

export function NewKeyDialog({ owner, title, open, onOpenChange }: Props) {
  const queries = useQueryClient()
  const usual: Scopes = { rights: usualFor(owner), on: 'all', names: '' }
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState(usual)
  const [life, setLife] = useState('')
  const creation = useMutation({
    mutationFn: api.createKey,
    onSuccess: () => void queries.invalidateQueries({ queryKey: keys.apiKeys(owner) }),
  })
  const change = (next: boolean) => {
    onOpenChange(next)
    if (next) return
    setName('')
    setScopes(usual)
    setLife('')
    creation.reset()
  }
  const names = scopes.on === 'some' ? namesIn(scopes.names) : []
  const lacking =
    scopes.rights.length === 0
      ? 'Choose at least one thing that it may do.'
      : scopes.on === 'some' && names.length === 0
        ? 'Name at least one group.'
        : undefined
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!name.trim() || lacking) return
    const expires_at = expiryOf(life, Date.now())
    creation.mutate({ owner, name: name.trim(), scopes: scopesOf(scopes.rights, names), expires_at })
  }
  const wrongName = fieldMessage(creation.error, 'name')
  return (
    <Dialog open={open} onOpenChange={change} title={creation.data ? `${creation.data.name} is ready` : title}>
      {creation.data ? (
        <>
          <SecretOnce secret={creation.data.secret} />
          <div className="mt-5 flex justify-end">
            <Button onClick={() => change(false)}>I have kept it</Button>
          </div>
        </>
      ) : (
        <form onSubmit={submit} className="space-y-4">
          <TextField
            label="Name"
            placeholder={owner === ORGANIZATION ? 'terraform' : 'orders service'}
            hint="Which program will use it. This list and the audit log show the name."
            value={name}
            onChange={(event) => setName(event.target.value)}
            error={wrongName}
            maxLength={100}
            autoComplete="off"
            required
          />
          <ScopesField owner={owner} value={scopes} onChange={setScopes} />
          <SelectField label="It expires" value={life} onChange={(event) => setLife(event.target.value)}>
            {LIVES.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </SelectField>
          {creation.error && !wrongName && <ProblemNotice error={creation.error} />}
          <div className="flex justify-end">
            <Button type="submit" busy={creation.isPending} disabledReason={lacking}>
              Make key
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}
