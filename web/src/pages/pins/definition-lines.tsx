import './pins.css'
import type { ReviewedDefinitionView } from '../../../../src/admin/contract.ts'

const marks = { '+': 'added', '-': 'removed', ' ': '' } as const

/** Invisible characters arrive spelt out as `\u{…}`; they are marked, so that nobody overlooks them. */
const escapes = /(\\u\{[0-9a-f]+\})/

/** A definition line by line, with its difference from the approved one. */
export function DiffLines({
  lines,
  label,
}: {
  readonly lines: ReviewedDefinitionView['lines']
  readonly label: string
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    <section class="definition-diff" aria-label={label} tabIndex={0}>
      {lines.map(({ mark, text, findings }, index) => (
        <div key={index} class={marks[mark]} data-flagged={findings.length > 0 || undefined}>
          <span aria-hidden="true">{mark}</span>
          <span class="definition-diff-text">
            {mark !== ' ' && <span class="hidden">{marks[mark]}: </span>}
            {text.split(escapes).map((part, at) => (at % 2 === 1 ? <mark key={at}>{part}</mark> : part))}
            {findings.length > 0 && <span class="hidden"> (flagged)</span>}
          </span>
        </div>
      ))}
    </section>
  )
}

/** What the scanner found in a definition. */
export function Findings({ findings }: Pick<ReviewedDefinitionView, 'findings'>) {
  if (findings.length === 0) return null
  return (
    <ul class="findings" aria-label="Scanner findings">
      {findings.map(({ kind, severity, where, excerpt }, index) => (
        <li key={index}>
          <span class={`chip ${severity === 'high' ? 'tone-bad' : 'tone-warn'}`}>{kind}</span>{' '}
          {where !== '' && <code>{where}</code>} <span class="quiet">{excerpt}</span>
        </li>
      ))}
    </ul>
  )
}
