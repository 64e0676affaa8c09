const steps: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowDown: (at, last) => Math.min(at + 1, last),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
}

/** Arrow keys, Home and End move the focus between the links of rows. */
export function moveAlongRows(event: KeyboardEvent & { readonly currentTarget: Element }): void {
  const step = steps[event.key]
  const { target } = event
  if (!step || !(target instanceof HTMLElement) || !target.classList.contains('row-link')) return
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('.row-link')]
  event.preventDefault()
  links[step(links.indexOf(target), links.length - 1)]?.focus()
}
