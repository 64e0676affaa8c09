import type { Tone } from '../../parts/mark.tsx'
import './bar.css'

interface BarProps {
  readonly parts: readonly { readonly key: string; readonly size: number; readonly tone: Tone }[]
}

/** Stacked bar. Hidden from screen readers, because the text below it has the same information. */
export function Bar({ parts }: BarProps) {
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
