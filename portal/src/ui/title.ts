import { useEffect } from 'react'

/** Names the page in the tab, and for screen readers, which announce it after each navigation. */
export function usePageTitle(...parts: string[]): void {
  const title = [...parts, 'Quorate'].join(' · ')
  useEffect(() => {
    document.title = title
  }, [title])
}
