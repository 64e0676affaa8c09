import { computed, signal } from '@preact/signals'
import { changedQuery, type QueryChanges } from './query.ts'
import { routeOf } from './route.ts'

interface Place {
  readonly path: string
  readonly search: string
}

const here = (): Place => ({ path: window.location.pathname, search: window.location.search })

/** Where the browser is. */
const place = signal<Place>(here())

export const path = computed(() => place.value.path)
export const route = computed(() => routeOf(place.value.path))
export const query = computed(() => new URLSearchParams(place.value.search))

/** Goes somewhere else; Back leads to where one was. */
export function navigate(address: string): void {
  history.pushState(null, '', address)
  place.value = here()
}

/** Goes somewhere else without leaving a trace in the history. */
export function replaceAddress(address: string): void {
  history.replaceState(null, '', address)
  place.value = here()
}

/** Changes the query of where one is: filters would fill the history with every letter typed. */
export const setQuery = (changes: QueryChanges): void =>
  replaceAddress(window.location.pathname + changedQuery(window.location.search, changes))

/** Whether a click on a link is ours: not for another tab, another site, a download or a mere anchor. */
function ours(event: MouseEvent): HTMLAnchorElement | undefined {
  if (event.defaultPrevented || event.button !== 0) return undefined
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return undefined
  const link = (event.target as Element | null)?.closest?.('a')
  if (!link?.href || link.target !== '' || link.hasAttribute('download')) return undefined
  if (link.origin !== window.location.origin || link.getAttribute('href')?.startsWith('#')) return undefined
  return link
}

/** From now on plain links move within the page, and Back and Forward are followed. */
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
