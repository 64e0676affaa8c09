import { signal } from '@preact/signals'
import { navigate } from '../routing/location.ts'
import { pathTo } from '../routing/route.ts'
import { visiblePages } from './menu.tsx'
import { createShortcuts, type Shortcut } from './shortcuts.ts'

export const helpShown = signal(false)
export const searchShown = signal(false)

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches('input, select, textarea'))

const isSearchKey = ({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean =>
  key.toLowerCase() === 'k' && ctrlKey !== metaKey && !altKey && !shiftKey

/** Handles keyboard shortcuts. While the user is typing, only the search opens; nothing happens while a dialog is open. */
export function listenToKeys(): void {
  const press = createShortcuts()
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || document.querySelector('dialog[open]')) return
    if (isSearchKey(event) && document.querySelector('.shell')) {
      event.preventDefault()
      searchShown.value = true
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return
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
    const visible = visiblePages().includes(shortcut.go)
    if (visible) navigate(pathTo(shortcut.go))
    return visible
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
