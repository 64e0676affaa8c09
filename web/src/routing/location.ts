import { computed, signal } from '@preact/signals'
import { type QueryChanges, updateQuery } from './query.ts'
import { parseRoute } from './route.ts'
import { mayDiscard } from './unsaved.ts'

interface Address {
  readonly path: string
  readonly search: string
}

const currentAddress = (): Address => ({ path: window.location.pathname, search: window.location.search })

const address = signal<Address>(currentAddress())

export const path = computed(() => address.value.path)
export const route = computed(() => parseRoute(address.value.path))
export const query = computed(() => new URLSearchParams(address.value.search))

/** Opens a page, unless the user decides to keep unsaved input on the current one. */
export function navigate(url: string): void {
  if (!mayDiscard()) return
  history.pushState(null, '', url)
  address.value = currentAddress()
}

/** Changes the address without adding a history entry. */
export function replaceAddress(url: string): void {
  history.replaceState(null, '', url)
  address.value = currentAddress()
}

/** Changes the query. Replaces the history entry: otherwise, typing in a filter would add an entry for every letter. */
export const setQuery = (changes: QueryChanges): void =>
  replaceAddress(window.location.pathname + updateQuery(window.location.search, changes))

/** The link that was clicked. Undefined if the click opens another tab, another site, a download or an anchor. */
function internalLink(event: MouseEvent): HTMLAnchorElement | undefined {
  if (event.defaultPrevented || event.button !== 0) return undefined
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return undefined
  const link = (event.target as Element | null)?.closest?.('a')
  if (!link?.href || link.target !== '' || link.hasAttribute('download')) return undefined
  if (link.origin !== window.location.origin || link.getAttribute('href')?.startsWith('#')) return undefined
  return link
}

/** Handles clicks on links without loading a page, and the Back and Forward buttons. */
export function followLinks(): void {
  window.addEventListener('popstate', () => {
    const { path, search } = address.peek()
    const next = currentAddress()
    if (next.path === path && next.search === search) return
    // Pages cannot cancel Back and Forward, only return.
    if (mayDiscard()) address.value = next
    else history.pushState(null, '', path + search)
  })
  document.addEventListener('click', (event) => {
    const link = internalLink(event)
    if (!link) return
    event.preventDefault()
    navigate(link.pathname + link.search)
  })
}
