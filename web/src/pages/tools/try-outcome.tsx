import type { TryResult } from '../../../../src/serve/admin/contract.ts'
import { took } from '../../format/duration.ts'
import { outcomeLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { pathTo } from '../../routing/route.ts'
import { objectAt } from '../../schema-form/schema.ts'
import { Refusal } from './refusal.tsx'
import { ResultView } from './result-view.tsx'

export function TryOutcome({ of }: { readonly of: TryResult }) {
  const refusal = of.error ?? refusalIn(of.result)
  const look = outcomeLooks[outcomeOf(of, refusal)]
  return (
    <div class="stack" data-testid="outcome">
      <p class="row spread" role="status">
        <span class="row">
          <Mark look={look} chip /> {took(of.ms)}
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
