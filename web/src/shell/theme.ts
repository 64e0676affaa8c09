import { effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const key = 'toolway.theme'

function kept(): Theme {
  const theme = document.documentElement.dataset.theme
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

/** The chosen theme; `public/theme.js` applied it before the first paint. */
export const theme = signal<Theme>(kept())

const prefersDark = window.matchMedia('(prefers-color-scheme: dark)')
const systemDark = signal(prefersDark.matches)
prefersDark.addEventListener('change', ({ matches }) => {
  systemDark.value = matches
})

/** Canvases must be redrawn when it changes. */
export const isDark = (): boolean => (theme.value === 'system' ? systemDark.value : theme.value === 'dark')

export function setTheme(chosen: Theme): void {
  theme.value = chosen
  try {
    if (chosen === 'system') localStorage.removeItem(key)
    else localStorage.setItem(key, chosen)
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
}

effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
})
