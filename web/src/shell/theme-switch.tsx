import { Button } from '../components/button.tsx'
import { setTheme, type Theme, theme } from './theme.ts'

const next: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' }
const themeNames: Readonly<Record<Theme, string>> = { system: 'system', light: 'light', dark: 'dark' }

/** A button that switches between system, light and dark. */
export function ThemeSwitch() {
  const label = `Theme: ${themeNames[theme.value]}. Switch to ${themeNames[next[theme.value]]}.`
  return (
    <Button
      kind="icon tiny"
      icon={theme.value}
      title={label}
      aria-label={label}
      onClick={() => setTheme(next[theme.value])}
    />
  )
}
