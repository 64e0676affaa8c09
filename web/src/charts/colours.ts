/** Resolves a custom property in the current theme, because a canvas cannot use it. */
export function colourOf(name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  probe.hidden = true
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

export const veil = (colour: string): string => `color-mix(in srgb, ${colour} 14%, transparent)`
