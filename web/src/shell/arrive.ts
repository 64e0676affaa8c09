/**
 * Moves the focus after navigation: to the title of the new page, which screen readers then announce, or to the row
 * of the item when returning to its list.
 */
export function arrive(main: HTMLElement, from: string, to: string): void {
  const row = from.startsWith(`${to}/`) && rowOf(main, from)
  const detail = main.querySelector<HTMLElement>('[data-focus]')
  // Details open beside the list, whose scroll position stays.
  if (!row && !detail) window.scrollTo(0, 0)
  const place = row || detail || main.querySelector<HTMLElement>('h1')
  place?.focus({ preventScroll: !row })
}

const rowOf = (main: HTMLElement, path: string): HTMLElement | undefined =>
  [...main.querySelectorAll<HTMLAnchorElement>('a.row-link')].find((link) => link.pathname === path)
