import type { ComponentChildren } from 'preact'
import './tile.css'

interface TileProps {
  readonly name: string
  readonly title?: string
  readonly value: ComponentChildren
  readonly sub?: ComponentChildren
}

export function Tiles({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <dl class="tiles card" aria-label={label}>
      {children}
    </dl>
  )
}

export function Tile({ name, title, value, sub }: TileProps) {
  return (
    <div class="tile" title={title}>
      <dt>{name}</dt>
      <dd class="tile-value">{value}</dd>
      {sub !== undefined && <dd class="tile-sub">{sub}</dd>}
    </div>
  )
}
