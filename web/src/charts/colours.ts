/** A canvas knows no custom properties: this asks the browser what they come to in the present theme. */
export function colourOf(name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  probe.hidden = true
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** The same colour, nearly transparent. */
export const veil = (colour: string): string => `color-mix(in srgb, ${colour} 14%, transparent)`
