import { useSignal } from '@preact/signals'
import type { TryResult } from '../../../../src/serve/admin/contract.ts'
import { formatDuration } from '../../format/duration.ts'
import { Code } from '../../parts/code.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { outcomeLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Note } from '../../parts/states.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { pathTo } from '../../routing/route.ts'
import { objectAt } from '../../schema-form/schema.ts'
import { ContentBlock } from './content-block.tsx'

export function TryOutcome({ of }: { readonly of: TryResult }) {
  const refusal = of.error ?? refusalIn(of.result)
  const look = outcomeLooks[outcomeOf(of, refusal)]
  return (
    <div class="stack" data-testid="outcome">
      <p class="row spread" role="status">
        <span class="row">
          <Mark look={look} chip /> {formatDuration(of.ms)}
        </span>
        <a href={pathTo('calls', of.call)}>Timeline and audit record</a>
      </p>
      {refusal && <Refusal of={refusal} />}
      {!refusal && of.result && <ResultView key={of.call} result={of.result} />}
    </div>
  )
}

/** Only denials by rules and limits name a rule. */
function outcomeOf({ result }: TryResult, refusal: TryResult['error'] | undefined) {
  if (refusal) return refusal.rule === undefined ? 'failed' : 'denied'
  return result?.isError === true ? 'tool_error' : 'answered'
}

/** Toolway's own errors are returned as tool results, so that models can react to them; `_meta` marks them. */
function refusalIn(result: TryResult['result']): NonNullable<TryResult['error']> | undefined {
  const { code, rule } = objectAt(objectAt(result ?? {}, '_meta'), 'dev.toolway/error')
  if (typeof code !== 'string') return undefined
  const [first] = Array.isArray(result?.content) ? result.content : []
  const message = typeof first?.text === 'string' ? first.text : 'The call was refused.'
  return { code, message, ...(typeof rule === 'string' && { rule }) }
}

interface RefusalProps {
  readonly of: { readonly code: string; readonly message: string; readonly rule?: string }
}

/** Why a call was refused or failed: message, code and rule. */
function Refusal({ of: { code, message, rule } }: RefusalProps) {
  return (
    <Note tone="bad">
      <p>{message}</p>
      <dl class="facts">
        <dt>Code</dt>
        <dd>
          <a href={pathTo('errors', code)}>
            <code>{code}</code>
          </a>
        </dd>
        {rule !== undefined && (
          <>
            <dt>Rule</dt>
            <dd>
              <code>{rule}</code>
            </dd>
          </>
        )}
      </dl>
    </Note>
  )
}

const plain = { shown: 'Content', raw: 'JSON' }
const withStructured = { shown: 'Content', structured: 'Structured', raw: 'JSON' }

function ResultView({ result }: { readonly result: Readonly<Record<string, unknown>> }) {
  const view = useSignal('shown')
  const blocks = Array.isArray(result.content) ? result.content : []
  const structured = result.structuredContent
  return (
    <Tabs<string>
      label="Result views"
      names={structured === undefined ? plain : withStructured}
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
      {view.value === 'raw' && <Code text={JSON.stringify(result, null, 2)} label="Full result" />}
    </Tabs>
  )
}
