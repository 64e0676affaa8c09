import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { actions, queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Loaded, Note } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { chainStatuses } from '../../components/statuses.ts'
import { RelativeTime } from '../../components/times.tsx'
import { pluralize } from '../../format/number.ts'

/** The state of the hash chain, and a button to verify it. */
export function HashChain() {
  const checking = useSignal(false)
  const chain = useResource(queries.chain, 'chain', checking.value ? { pollEveryMs: 700 } : {})
  const state = chain.data?.state
  useEffect(() => {
    checking.value = state === 'checking'
  }, [state, checking])
  const verify = async () => {
    await withNotice(actions.verifyChain, () => 'Verification started.')
    checking.value = true
    chain.reload()
  }
  return (
    <Loaded resource={chain} what="the state of the hash chain">
      {(data) => (
        <>
          <div class="row spread card chain">
            <span class="row">
              <strong>Hash chain</strong>
              <StatusBadge status={chainStatuses[data.state]} chip />
              {data.checkedAt !== null && (
                <span class="quiet">
                  {data.records !== null && `${pluralize(data.records, 'record')}, `}checked{' '}
                  <RelativeTime at={data.checkedAt} />
                </span>
              )}
            </span>
            <ActionButton name="Verify" icon="check" run={verify} />
          </div>
          {data.problems.length > 0 && (
            <Note tone="bad">
              {data.state === 'broken' && (
                <p>
                  <strong>The audit log was modified after it was written.</strong> Run{' '}
                  <code>toolway audit verify</code> for details.
                </p>
              )}
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
