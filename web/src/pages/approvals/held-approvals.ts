import type { ApprovalView } from '../../../../src/admin/contract.ts'

/** An approval in the list. `endedAt` is set once the call no longer waits. */
export interface ListedApproval {
  readonly approval: ApprovalView
  readonly endedAt?: number
}

/** How long an approval stays in the list after it ended, at least. */
export const endedShownMs = 5000

/**
 * The list after the calls that wait have changed. Nobody may hit the buttons of another call because the list moved:
 * approvals that ended stay in their places for a while and as long as the list is in use, and new ones are added below.
 */
export function updateListed(
  listed: readonly ListedApproval[],
  waiting: readonly ApprovalView[],
  { now, inUse }: { readonly now: number; readonly inUse: boolean },
): readonly ListedApproval[] {
  const latest = new Map(waiting.map((approval) => [approval.id, approval]))
  const kept = listed.flatMap(({ approval, endedAt = now }): ListedApproval[] => {
    const current = latest.get(approval.id)
    latest.delete(approval.id)
    if (current) return [{ approval: current }]
    return inUse || now - endedAt < endedShownMs ? [{ approval, endedAt }] : []
  })
  return [...kept, ...[...latest.values()].map((approval) => ({ approval }))]
}
