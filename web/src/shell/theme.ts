import { effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const key = 'toolway.theme'

function kept(): Theme {
  const theme = document.documentElement.dataset.theme
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

/** What somebody chose; `public/theme.js` has applied it before anything was drawn. */
export const theme = signal<Theme>(kept())

const prefersDark = window.matchMedia('(prefers-color-scheme: dark)')
const systemDark = signal(prefersDark.matches)
prefersDark.addEventListener('change', ({ matches }) => {
  systemDark.value = matches
})

/** Which one is seen: canvases must be drawn anew when it changes. */
export const isDark = (): boolean => (theme.value === 'system' ? systemDark.value : theme.value === 'dark')

export function setTheme(chosen: Theme): void {
  theme.value = chosen
  try {
    if (chosen === 'system') localStorage.removeItem(key)
    else localStorage.setItem(key, chosen)
  } catch {
    // Where storage is forbidden it holds until the page is left.
  }
}

effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
})
