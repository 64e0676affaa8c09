import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { actions, queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { formatCount } from '../../format/number.ts'
import { Action } from '../../parts/action.tsx'
import { chainLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Ago } from '../../parts/moment.tsx'
import { attempt } from '../../parts/notices.tsx'
import { Loaded, Note } from '../../parts/states.tsx'

/** State of the hash chain, and a button to verify it. */
export function Chain() {
  const checking = useSignal(false)
  const chain = useResource(queries.chain, 'chain', checking.value ? { every: 700 } : {})
  const state = chain.data?.state
  useEffect(() => {
    checking.value = state === 'checking'
  }, [state, checking])
  const verify = async () => {
    await attempt(actions.verifyChain, () => 'Verification started.')
    checking.value = true
    chain.reload()
  }
  return (
    <Loaded of={chain} what="the state of the hash chain">
      {(data) => (
        <>
          <div class="row spread card chain">
            <span class="row">
              <strong>Hash chain</strong>
              <Mark look={chainLooks[data.state]} chip />
              {data.checkedAt !== null && (
                <span class="quiet">
                  {data.records !== null && `${formatCount(data.records)} records, `}checked <Ago at={data.checkedAt} />
                </span>
              )}
            </span>
            <Action name="Verify" icon="check" run={verify} />
          </div>
          {data.problems.length > 0 && (
            <Note tone="bad">
              <p>
                <strong>The audit log was modified after it was written.</strong> Run <code>toolway audit verify</code>{' '}
                for details.
              </p>
              {data.problems.map((problem) => (
                <p key={problem}>{problem}</p>
              ))}
            </Note>
          )}
        </>
      )}
    </Loaded>
  )
}
