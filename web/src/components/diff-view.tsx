import type { DiffLine } from '../../../src/admin/contract.ts'

interface DiffViewProps {
  readonly lines: readonly DiffLine[]
  /** The label for screen readers, such as `Changes to toolway.yaml`. */
  readonly label: string
}

const names = { '+': 'added', '-': 'removed', ' ': '', '…': 'omitted' } as const

/** Changed lines with the lines around them. */
export function DiffView({ lines, label }: DiffViewProps) {
  if (lines.length === 0) return <p class="quiet">No changes.</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    // biome-ignore lint/a11y/useSemanticElements: it contains no form fields
    <pre class="diff" tabIndex={0} role="group" aria-label={label}>
      {lines.map(({ mark, text }, index) => (
        <span key={`${index} ${mark}`} class={names[mark]}>
          {mark === '…' ? '…' : `${mark} ${text}`}
          {'\n'}
        </span>
      ))}
    </pre>
  )
}
