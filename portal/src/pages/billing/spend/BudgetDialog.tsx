import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type Budget } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { SelectField, TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { ACTIONS, amountText, microsOf, PERCENT_MAX, percentsOf, THRESHOLDS_MAX } from './budgets'

export interface Owner {
  /** null: the organization. */
  projectId: string | null
  name: string
}

interface Props {
  owner: Owner | null
  budget: Budget | undefined
  currency: string
  onClose: () => void
}

/** Sets, changes or removes the budget of a project or of the organization. */
export function BudgetDialog({ owner, budget, currency, onClose }: Props) {
  return (
    <Dialog
      open={owner !== null}
      onOpenChange={(open) => !open && onClose()}
      title={`Budget of ${owner?.name ?? ''}`}
      description="You see an alert here, and in the API, when the month reaches a threshold. A cap acts by itself."
    >
      {owner && <Form owner={owner} budget={budget} currency={currency} onClose={onClose} />}
    </Dialog>
  )
}

const WRONG_AMOUNT = 'Enter an amount above zero, as in 250 or 1,250.50.'
const WRONG_PERCENTS = `Enter up to ${THRESHOLDS_MAX} different percentages from 1 to ${PERCENT_MAX}, as in 50, 80, 100.`

function Form({ owner, budget, currency, onClose }: Props & { owner: Owner }) {
  const [amount, setAmount] = useState(budget ? amountText(budget.monthly_micros) : '')
  const [actual, setActual] = useState((budget?.thresholds_percent ?? [50, 80, 100]).join(', '))
  const [forecast, setForecast] = useState((budget?.forecast_thresholds_percent ?? [100]).join(', '))
  const [action, setAction] = useState(budget?.action ?? 'alert')
  const [tried, setTried] = useState(false)
  const { saving, removal } = useChanges(onClose)
  const [micros, thresholds, foreseen] = [microsOf(amount), percentsOf(actual), percentsOf(forecast)]
  const none = thresholds?.length === 0 && foreseen?.length === 0
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (micros === null || !thresholds || !foreseen || none) return
    saving.mutate({
      project_id: owner.projectId,
      monthly_micros: micros,
      thresholds_percent: thresholds,
      forecast_thresholds_percent: foreseen,
      action,
    })
  }
  const refused = fieldMessage(saving.error, 'monthly_micros')
  const problem = saving.error && !refused ? saving.error : removal.error
  return (
    <form onSubmit={submit} noValidate className="space-y-4">
      <TextField
        label="Amount each month"
        unit={currency}
        inputMode="decimal"
        autoComplete="off"
        placeholder="250"
        value={amount}
        onChange={(event) => setAmount(event.target.value)}
        error={tried && micros === null ? WRONG_AMOUNT : refused}
      />
      <TextField
        label="Alert when spent"
        unit="% of it"
        autoComplete="off"
        hint="Percentages of the amount, with commas."
        value={actual}
        onChange={(event) => setActual(event.target.value)}
        error={tried && !thresholds ? WRONG_PERCENTS : undefined}
      />
      <TextField
        label="Alert when forecast"
        unit="% of it"
        autoComplete="off"
        hint="The forecast of the whole month, so you hear of it earlier."
        value={forecast}
        onChange={(event) => setForecast(event.target.value)}
        error={
          tried && (!foreseen || none) ? (none ? 'Enter a threshold in one of the two.' : WRONG_PERCENTS) : undefined
        }
      />
      <SelectField
        label="Once the amount is reached"
        hint={ACTIONS[action].meaning}
        value={action}
        onChange={(event) => setAction(event.target.value as Budget['action'])}
      >
        {Object.entries(ACTIONS).map(([value, { label }]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </SelectField>
      {problem && <ProblemNotice error={problem} />}
      <div className="flex flex-wrap justify-between gap-2 pt-1">
        {budget ? (
          <Button variant="quiet" busy={removal.isPending} onClick={() => removal.mutate(budget.id)}>
            Remove budget
          </Button>
        ) : (
          <span />
        )}
        <Button type="submit" busy={saving.isPending}>
          Save budget
        </Button>
      </div>
    </form>
  )
}

function useChanges(onClose: () => void) {
  const queries = useQueryClient()
  const onSuccess = async () => {
    await queries.invalidateQueries({ queryKey: keys.budgets })
    onClose()
  }
  return {
    saving: useMutation({ mutationFn: api.putBudget, onSuccess }),
    removal: useMutation({ mutationFn: api.deleteBudget, onSuccess }),
  }
}
