import * as calls from './calls'

/** The reason for which the browser goes to an identity provider. It is remembered in this tab until it is back. */
export interface Errand {
  purpose: 'log_in' | 'join' | 'connect' | 'confirm'
  /** The provider's name, for people. */
  provider: string
  /** The path to go on to; for `join` the secret of the invitation. */
  next: string
}

const KEPT = 'quorate.errand'

/** Leaves the portal. The provider sends the browser back to `/login/return`. */
export async function goToProvider(provider: { id: string; name: string }, errand: Omit<Errand, 'provider'>) {
  const { purpose } = errand
  const { url } =
    purpose === 'connect' || purpose === 'confirm'
      ? await calls.beginIdentity({ provider: provider.id, purpose })
      : await calls.beginProviderLogin(provider.id)
  sessionStorage.setItem(KEPT, JSON.stringify({ ...errand, provider: provider.name }))
  window.location.assign(url)
}

/** The errand of the browser that has come back. null: it did not leave from this tab. */
export function errandOf(): Errand | null {
  const kept = sessionStorage.getItem(KEPT)
  return kept === null ? null : (JSON.parse(kept) as Errand)
}

export function endErrand(): void {
  sessionStorage.removeItem(KEPT)
}
