/** The secret of a link that was mailed: it stands behind `#`, which no server gets to see. */
export function linkSecret(hash: string): string {
  return /^#[\w-]+$/.test(hash) ? hash.slice(1) : ''
}
