import { computed, signal } from '@preact/signals'
import { changedQuery, type QueryChanges } from './query.ts'
import { routeOf } from './route.ts'

interface Place {
  readonly path: string
  readonly search: string
}

const here = (): Place => ({ path: window.location.pathname, search: window.location.search })

const place = signal<Place>(here())

export const path = computed(() => place.value.path)
export const route = computed(() => routeOf(place.value.path))
export const query = computed(() => new URLSearchParams(place.value.search))

export function navigate(address: string): void {
  history.pushState(null, '', address)
  place.value = here()
}

/** Does not add a history entry. */
export function replaceAddress(address: string): void {
  history.replaceState(null, '', address)
  place.value = here()
}

/** Replaces the history entry: filters would add one for every letter typed. */
export const setQuery = (changes: QueryChanges): void =>
  replaceAddress(window.location.pathname + changedQuery(window.location.search, changes))

/** The link, unless the click is for another tab, another site, a download or an anchor. */
function ours(event: MouseEvent): HTMLAnchorElement | undefined {
  if (event.defaultPrevented || event.button !== 0) return undefined
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return undefined
  const link = (event.target as Element | null)?.closest?.('a')
  if (!link?.href || link.target !== '' || link.hasAttribute('download')) return undefined
  if (link.origin !== window.location.origin || link.getAttribute('href')?.startsWith('#')) return undefined
  return link
}

/** Handles clicks on links without loading a page, and follows Back and Forward. */
export function followLinks(): void {
  window.addEventListener('popstate', () => {
    place.value = here()
  })
  document.addEventListener('click', (event) => {
    const link = ours(event)
    if (!link) return
    event.preventDefault()
    navigate(link.pathname + link.search)
  })
}
