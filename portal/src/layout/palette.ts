import { useEffect, useState } from 'react'

const OPEN = 'quorate:palette'

/** For buttons: the palette itself is in the frame of the pages. */
export function openPalette(): void {
  window.dispatchEvent(new Event(OPEN))
}

/** Whether the palette is open. Ctrl+K, or ⌘K, opens and closes it. */
export function usePalette(): [boolean, (open: boolean) => void] {
  const [open, setOpen] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey) || event.shiftKey || event.altKey) return
      event.preventDefault()
      setOpen((before) => !before)
    }
    const onOpen = () => setOpen(true)
    window.addEventListener('keydown', onKey)
    window.addEventListener(OPEN, onOpen)
    return () => {
      window.removeEventListener('keydown', onKey)
      window.removeEventListener(OPEN, onOpen)
    }
  }, [])
  return [open, setOpen]
}
