import { Copy } from './copy.tsx'

interface CodeProps {
  readonly text: string
  /** What it is: `Command for Claude Code`. */
  readonly label: string
  readonly wrap?: boolean
}

/** Text for a terminal or a file, with a button that copies it. */
export function Code({ text, label, wrap = false }: CodeProps) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard */}
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields */}
      <pre class={wrap ? 'wrap' : ''} tabIndex={0} role="group" aria-label={label}>
        <code>{text}</code>
      </pre>
      <Copy text={text} label={`Copy: ${label}`} />
    </div>
  )
}
