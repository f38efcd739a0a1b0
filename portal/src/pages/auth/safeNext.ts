/** The path to open after login. Only the portal's own paths: a link to this page must not lead elsewhere. */
export function safeNext(next: string | undefined): string {
  return next?.startsWith('/') && !next.startsWith('//') && !next.startsWith('/\\') ? next : '/'
}
