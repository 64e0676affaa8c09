import { signal } from '@preact/signals'
import { navigate } from '../routing/location.ts'
import { pathTo } from '../routing/route.ts'
import { createShortcuts, type Shortcut } from './shortcuts.ts'

export const helpShown = signal(false)

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches('input, select, textarea'))

/** Handles keyboard shortcuts, except while the user is typing or a dialog is open. */
export function listenToKeys(): void {
  const press = createShortcuts()
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
    if (document.querySelector('dialog[open]')) return
    if (isTyping(event.target)) {
      if (event.key === 'Escape') (event.target as HTMLElement).blur()
      return
    }
    const shortcut = press(event.key, event.timeStamp)
    if (shortcut === undefined) return
    if (run(shortcut)) event.preventDefault()
  })
}

/** Runs a shortcut. Returns false if there was nothing to do. */
function run(shortcut: Shortcut): boolean {
  if (typeof shortcut === 'object') {
    navigate(pathTo(shortcut.go))
    return true
  }
  if (shortcut === 'help') {
    helpShown.value = true
    return true
  }
  const selectors = { search: '[data-search]', escape: '[data-back]', pause: '[data-pause]' }
  const element = document.querySelector<HTMLElement>(selectors[shortcut])
  if (shortcut === 'search') element?.focus()
  else element?.click()
  return element !== null
}
