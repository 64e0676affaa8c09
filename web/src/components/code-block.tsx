import { showDirections } from '../format/show-directions.ts'
import { CopyButton } from './copy-button.tsx'

interface CodeBlockProps {
  readonly text: string
  /** The label for screen readers, such as `Command for Claude Code`. */
  readonly label: string
  readonly wrap?: boolean
}

export function CodeBlock({ text, label, wrap = false }: CodeBlockProps) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard */}
      {/* biome-ignore lint/a11y/useSemanticElements: it contains no form fields */}
      <pre class={wrap ? 'wrap' : ''} dir="auto" tabIndex={0} role="group" aria-label={label}>
        <code>{showDirections(text)}</code>
      </pre>
      <CopyButton text={text} label={`Copy: ${label}`} />
    </div>
  )
}
