import type { Tone } from '../../components/status-badge.tsx'
import './stacked-bar.css'

interface StackedBarProps {
  readonly parts: readonly { readonly key: string; readonly size: number; readonly tone: Tone }[]
}

/** A stacked bar. It is hidden from screen readers, because the text below it has the same information. */
export function StackedBar({ parts }: StackedBarProps) {
  return (
    <div class="bar" aria-hidden="true">
      {parts
        .filter(({ size }) => size > 0)
        .map(({ key, size, tone }) => (
          <span key={key} class={`tone-${tone}`} style={{ flexGrow: size }} />
        ))}
    </div>
  )
}
