/** Props of a scrolling box: a keyboard must be able to reach it, and it then needs a name. */
export function scrollable(label: string) {
  return { tabIndex: 0, role: 'region', 'aria-label': label } as const
}
