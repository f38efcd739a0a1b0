import { useSyncExternalStore } from 'react'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'quorate.theme'
const listeners = new Set<() => void>()
const system = globalThis.matchMedia?.('(prefers-color-scheme: dark)')
system?.addEventListener('change', () => listeners.forEach((listener) => listener()))

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function chosen(): Theme {
  const value = document.documentElement.dataset.theme
  return value === 'light' || value === 'dark' ? value : 'system'
}

export function setTheme(theme: Theme): void {
  if (theme === 'system') {
    delete document.documentElement.dataset.theme
    localStorage.removeItem(KEY)
  } else {
    document.documentElement.dataset.theme = theme
    localStorage.setItem(KEY, theme)
  }
  listeners.forEach((listener) => listener())
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, chosen)
}

/** The current theme. Charts paint on a canvas and must repaint when it changes. */
export function useShownTheme(): 'light' | 'dark' {
  return useSyncExternalStore(subscribe, () => {
    const theme = chosen()
    if (theme !== 'system') return theme
    return system?.matches ? 'dark' : 'light'
  })
}
