import { setOperatorToken } from '@/api'

/** The tab forgets it when it is closed. */
const STORED = 'quorate.operator'

/** Whether an operator has logged in in this tab. */
export function resumeOperator(): boolean {
  const token = sessionStorage.getItem(STORED)
  setOperatorToken(token)
  return token !== null
}

export function beginOperator(token: string): void {
  sessionStorage.setItem(STORED, token)
  setOperatorToken(token)
}

export function endOperator(): void {
  sessionStorage.removeItem(STORED)
  setOperatorToken(null)
}
