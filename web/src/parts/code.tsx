import { Copy } from './copy.tsx'

interface CodeProps {
  readonly text: string
  /** Label for screen readers: `Command for Claude Code`. */
  readonly label: string
  readonly wrap?: boolean
}

export function Code({ text, label, wrap = false }: CodeProps) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard */}
      {/* biome-ignore lint/a11y/useSemanticElements: it contains no form fields */}
      <pre class={wrap ? 'wrap' : ''} tabIndex={0} role="group" aria-label={label}>
        <code>{text}</code>
      </pre>
      <Copy text={text} label={`Copy: ${label}`} />
    </div>
  )
}
