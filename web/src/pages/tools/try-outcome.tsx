import { useSignal } from '@preact/signals'
import type { TryResult } from '../../../../src/admin/contract.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { Fact, Facts } from '../../components/facts.tsx'
import { ForeignText } from '../../components/foreign-text.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { Note } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { Tabs } from '../../components/tabs.tsx'
import { formatDuration } from '../../format/duration.ts'
import { pathTo } from '../../routing/route.ts'
import { objectAt } from '../../schema-form/schema.ts'
import { ContentBlock } from './content-block.tsx'

export function TryOutcome({ result }: { readonly result: TryResult }) {
  const error = errorOf(result)
  const status = outcomeStatuses[outcomeOf(result, error)]
  return (
    <div class="stack" data-testid="outcome">
      <p class="row spread" role="status">
        <span class="row">
          <StatusBadge status={status} chip /> {formatDuration(result.ms)}
        </span>
        <a href={pathTo('calls', result.call)}>Timeline and audit record</a>
      </p>
      {error && <CallError error={error} />}
      {!error && result.result && <ResultView key={result.call} result={result.result} />}
    </div>
  )
}

/** The outcome of a call. An error that names a rule is a denial: only denials by rules and limits name one. */
function outcomeOf({ result }: TryResult, error: TryResult['error'] | undefined) {
  if (error) return error.rule === undefined ? 'failed' : 'denied'
  return result?.isError === true ? 'tool_error' : 'answered'
}

/**
 * The error of a call, also if it is Toolway's own error in a result. Such errors are returned as tool results, so that models can react
 * to them; `_meta` marks them.
 */
export function errorOf({ error, result }: TryResult): NonNullable<TryResult['error']> | undefined {
  if (error) return error
  const { code, rule } = objectAt(objectAt(result ?? {}, '_meta'), 'dev.toolway/error')
  if (typeof code !== 'string') return undefined
  const [first] = Array.isArray(result?.content) ? result.content : []
  const message = typeof first?.text === 'string' ? first.text : 'The call was refused.'
  return { code, message, ...(typeof rule === 'string' && { rule }) }
}

interface CallErrorProps {
  readonly error: { readonly code: string; readonly message: string; readonly rule?: string }
}

/** Explains why a call was refused or failed: shows the message, the code and the rule. */
function CallError({ error: { code, message, rule } }: CallErrorProps) {
  return (
    <Note tone="bad">
      <ForeignText text={message} />
      <Facts>
        <Fact name="Code">
          <a href={pathTo('errors', code)}>
            <code>{code}</code>
          </a>
        </Fact>
        {rule !== undefined && (
          <Fact name="Rule">
            <code>{rule}</code>
          </Fact>
        )}
      </Facts>
    </Note>
  )
}

const tabs = { shown: 'Content', raw: 'JSON' }
const tabsWithStructured = { shown: 'Content', structured: 'Structured', raw: 'JSON' }

function ResultView({ result }: { readonly result: Readonly<Record<string, unknown>> }) {
  const view = useSignal('shown')
  const blocks = Array.isArray(result.content) ? result.content : []
  const structured = result.structuredContent
  return (
    <Tabs<string>
      label="Result views"
      names={structured === undefined ? tabs : tabsWithStructured}
      value={view.value}
      onChange={(next) => (view.value = next)}
    >
      {view.value === 'shown' &&
        (blocks.length === 0 ? (
          <p class="quiet">The result has no content{structured === undefined ? '.' : ' except structured content.'}</p>
        ) : (
          blocks.map((block, index) => <ContentBlock key={index} block={block} />)
        ))}
      {view.value === 'structured' && <JsonTree value={structured} open={4} />}
      {view.value === 'raw' && <CodeBlock text={JSON.stringify(result, null, 2)} label="Full result" />}
    </Tabs>
  )
}
