import type { ComponentChildren } from 'preact'
import './tiles.css'

interface TileProps {
  readonly name: string
  readonly title?: string
  readonly value: ComponentChildren
  readonly detail?: ComponentChildren
}

export function Tiles({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <dl class="tiles card" aria-label={label}>
      {children}
    </dl>
  )
}

export function Tile({ name, title, value, detail }: TileProps) {
  return (
    <div class="tile" title={title}>
      <dt>{name}</dt>
      <dd class="tile-value">{value}</dd>
      {detail !== undefined && <dd class="tile-sub">{detail}</dd>}
    </div>
  )
}
