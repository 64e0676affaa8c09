import { queries } from '../../api/endpoints.ts'
import { liveApprovals } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { Page } from '../../components/page.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { ApprovalList, useHeldApprovals } from './approval-list.tsx'

export function Approvals() {
  const approvals = useResource(queries.approvals, 'approvals', { pollWhenOffline: true, live: liveApprovals })
  const held = useHeldApprovals(approvals.data ?? [])
  return (
    <Page title="Approvals" note="Calls that wait for a person. The first answer counts.">
      <Loaded resource={approvals} what="the approvals">
        {() =>
          held.listed.length > 0 ? (
            <>
              <h2 class="hidden">Waiting</h2>
              <ApprovalList held={held} />
            </>
          ) : (
            <div class="card">
              <EmptyState title="No calls are waiting for approval">
                <p>
                  List tools under <code>mcpServers.NAME.approve</code> or <code>agents.NAME.approve</code>, and calls
                  to them wait here.
                </p>
              </EmptyState>
            </div>
          )
        }
      </Loaded>
    </Page>
  )
}
