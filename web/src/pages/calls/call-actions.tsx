import { useSignal } from '@preact/signals'
import type { CallDetail, TryResult } from '../../../../src/admin/contract.ts'
import { actions } from '../../api/endpoints.ts'
import { liveOverview } from '../../api/live.ts'
import { ApiError, asApiError } from '../../api/request.ts'
import { isAdmin } from '../../api/session.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { SegmentedControl } from '../../components/segmented-control.tsx'
import { LoadError } from '../../components/states.tsx'
import { TryOutcome } from '../tools/try-outcome.tsx'
import { targetOf } from './call-columns.tsx'
import { type CopyFormat, copyAs, copyFormats } from './copy-as.ts'

/** Makes a call again, and shows it as a command or as code. */
export function CallActions({ call }: { readonly call: CallDetail }) {
  const outcome = useSignal<TryResult | ApiError | undefined>(undefined)
  const format = useSignal<CopyFormat | undefined>(undefined)
  const { rerun } = call
  const run = async () => {
    try {
      outcome.value = await actions.runAgain(call.id)
    } catch (thrown) {
      outcome.value = asApiError(thrown)
    }
  }
  return (
    <section class="stack tight" aria-label="Actions">
      <div class="row">
        {rerun?.possible && (
          <ActionButton
            name="Run again"
            icon="play"
            confirm={
              rerun.write
                ? { title: `Run ${targetOf(call)} again?`, text: 'This call may change something a second time.' }
                : undefined
            }
            run={run}
          />
        )}
        <span class="label">Copy as</span>
        <SegmentedControl
          label="Copy as"
          options={copyFormats}
          value={format.value}
          onChange={(next) => (format.value = format.value === next ? undefined : next)}
        />
      </div>
      {rerun && !rerun.possible && <p class="quiet small">This call cannot be run again. {rerun.reason}</p>}
      {format.value && <CopiedCall call={call} format={format.value} />}
      {outcome.value instanceof ApiError && <LoadError error={outcome.value} what="the result" />}
      {outcome.value !== undefined && !(outcome.value instanceof ApiError) && <TryOutcome result={outcome.value} />}
    </section>
  )
}

function CopiedCall({ call, format }: { readonly call: CallDetail; readonly format: CopyFormat }) {
  const { origin } = window.location
  const known = call.captured?.arguments
  const text = copyAs(format, {
    ...call,
    arguments: known && !known.truncated ? known.text : '{}',
    origin,
    endpoint: liveOverview.value?.endpoint ?? `${origin}/mcp`,
  })
  if (text === undefined) return <p class="quiet">{copyFormats[format]} cannot make this kind of call.</p>
  const incomplete = !known || known.truncated || known.redacted
  return (
    <>
      <CodeBlock text={text} label={`Call as ${copyFormats[format]}`} wrap />
      {incomplete && (
        <p class="quiet small">
          {isAdmin.value ? 'The arguments were not captured in full' : 'Only admins see the arguments'}. Replace them
          before you run this.
        </p>
      )}
    </>
  )
}
