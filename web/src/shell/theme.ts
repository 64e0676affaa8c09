import { effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const storageKey = 'toolway.theme'

function initialTheme(): Theme {
  const theme = document.documentElement.dataset.theme
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

/** The chosen theme. `public/theme.js` has already applied it before the first paint. */
export const theme = signal<Theme>(initialTheme())

const prefersDark = window.matchMedia('(prefers-color-scheme: dark)')
const systemDark = signal(prefersDark.matches)
prefersDark.addEventListener('change', ({ matches }) => {
  systemDark.value = matches
})

/** Whether the page is dark. Canvases must be redrawn when this changes. */
export const isDark = (): boolean => (theme.value === 'system' ? systemDark.value : theme.value === 'dark')

export function setTheme(chosen: Theme): void {
  theme.value = chosen
  try {
    if (chosen === 'system') localStorage.removeItem(storageKey)
    else localStorage.setItem(storageKey, chosen)
  } catch {
    // If storage is unavailable, the choice lasts until the page is closed.
  }
}

effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
})
