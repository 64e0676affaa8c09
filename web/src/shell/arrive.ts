/**
 * Puts whoever goes from one page to another at its beginning: those who hear it hear the title first. Who comes back
 * from a thing to the list it is in finds themselves at its row.
 */
export function arrive(main: HTMLElement, from: string, to: string): void {
  const row = from.startsWith(`${to}/`) && rowOf(main, from)
  const detail = main.querySelector<HTMLElement>('[data-focus]')
  // A detail stands beside its list, which stays where it is.
  if (!row && !detail) window.scrollTo(0, 0)
  const place = row || detail || main.querySelector<HTMLElement>('h1')
  place?.focus({ preventScroll: !row })
}

const rowOf = (main: HTMLElement, path: string): HTMLElement | undefined =>
  [...main.querySelectorAll<HTMLAnchorElement>('a.row-link')].find((link) => link.pathname === path)
