import { useRouterState } from '@tanstack/react-router'
import { useEffect, useState } from 'react'

/** Announces the page's title after a navigation, as a browser does after a full load. */
export function RouteAnnouncer() {
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname })
  const [said, setSaid] = useState('')
  useEffect(() => {
    // The page sets its title in an effect of its own; the next frame has it.
    const frame = requestAnimationFrame(() => setSaid(document.title))
    return () => cancelAnimationFrame(frame)
  }, [path])
  return (
    <p aria-live="polite" className="sr-only">
      {said}
    </p>
  )
}
