import type { CallDetail } from '../../../../src/admin/contract.ts'
import { isAdmin } from '../../api/session.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { ForeignText } from '../../components/foreign-text.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { Note } from '../../components/states.tsx'
import { formatDuration } from '../../format/duration.ts'
import { indentJson, parseExactly } from '../../format/exact-json.ts'
import { formatBytes, formatProgress, pluralize } from '../../format/number.ts'
import { isObject } from '../../schema-form/schema.ts'
import { ContentBlock } from '../tools/content-block.tsx'
import '../playground/playground.css'

type Captured = NonNullable<CallDetail['captured']>

/** What was sent and received, side by side. Without capture, what the audit record holds. */
export function CapturedContent({ call }: { readonly call: CallDetail }) {
  const { captured, audit } = call
  if (!captured) return <NotCaptured args={audit.begin?.arguments} />
  const { result, error, progress } = captured
  return (
    <>
      <div class="sides">
        <section class="stack tight">
          <h3>Arguments</h3>
          <Part part={captured.arguments} label="Arguments" />
        </section>
        <section class="stack tight">
          <h3>{error ? 'Error' : 'Result'}</h3>
          {error && (
            <Note tone="bad">
              <ForeignText text={error.message} />
              <p class="quiet small">{error.code}</p>
            </Note>
          )}
          {result && <Result part={result} />}
          {!error && !result && <p class="quiet">The call is still running.</p>}
        </section>
      </div>
      {progress.length > 0 && <Progress captured={captured} />}
    </>
  )
}

function NotCaptured({ args }: { readonly args: unknown }) {
  if (!isAdmin.value) return null
  return (
    <section class="stack tight">
      <h3>Arguments</h3>
      {isObject(args) ? <JsonTree value={args} open={2} /> : <p class="quiet">The audit record has none.</p>}
      <p class="quiet small">
        {isObject(args) && 'From the audit record. '}
        The result was not captured, or is no longer kept. <code>capture: true</code> on the server or agent keeps the
        results of recent calls in memory.
      </p>
    </section>
  )
}

function Part({ part, label }: { readonly part: Captured['arguments']; readonly label: string }) {
  return (
    <>
      <CodeBlock text={part.truncated ? part.text : indentJson(part.text)} label={label} wrap />
      <PartNotes part={part} />
    </>
  )
}

function PartNotes({ part: { truncated, redacted, bytes } }: { readonly part: Captured['arguments'] }) {
  const notes = [truncated && `cut, ${formatBytes(bytes)} in all`, redacted && 'secrets are redacted'].filter(Boolean)
  return notes.length > 0 ? <p class="quiet small">{notes.join('; ')}</p> : null
}

/** The result: its content blocks if there are any, otherwise its JSON. */
function Result({ part }: { readonly part: Captured['arguments'] }) {
  const blocks = part.truncated ? undefined : contentOf(part.text)
  if (!blocks) return <Part part={part} label="Result" />
  return (
    <>
      {blocks.map((block, index) => (
        <ContentBlock key={index} block={block} />
      ))}
      <details>
        <summary>JSON</summary>
        <CodeBlock text={indentJson(part.text)} label="Result as JSON" wrap />
      </details>
      <PartNotes part={part} />
    </>
  )
}

function contentOf(text: string): readonly unknown[] | undefined {
  try {
    const { content } = parseExactly(text) as { content?: unknown }
    return Array.isArray(content) && content.length > 0 ? content : undefined
  } catch {
    return undefined
  }
}

function Progress({ captured: { progress, droppedProgress } }: { readonly captured: Captured }) {
  return (
    <section class="stack tight">
      <h3>Progress</h3>
      {droppedProgress > 0 && <p class="quiet small">{pluralize(droppedProgress, 'earlier message')} not kept</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard */}
      <ol class="progress-list" tabIndex={0}>
        {progress.map((one, index) => (
          <li key={index}>
            <span class="quiet">{formatDuration(one.ms)}</span> {formatProgress(one)}
          </li>
        ))}
      </ol>
    </section>
  )
}
