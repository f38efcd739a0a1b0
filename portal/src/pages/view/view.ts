import { setViewToken } from '@/api'

/** The tab forgets it when it is closed. */
const STORED = 'quorate.view'

export function beginView(token: string): void {
  sessionStorage.setItem(STORED, token)
  setViewToken(token)
}

/** At the start of the portal: whether this tab shows an organization to an operator. */
export function resumeView(): void {
  setViewToken(sessionStorage.getItem(STORED))
}

export function endView(): void {
  sessionStorage.removeItem(STORED)
  setViewToken(null)
}
