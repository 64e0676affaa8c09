import type { CallView } from '../../../src/admin/contract.ts'

/** Merges started and finished calls into the known ones, newest first. Drops the oldest calls beyond the limit. */
export function mergeCalls(
  known: readonly CallView[],
  updates: readonly CallView[],
  limit: number,
): readonly CallView[] {
  if (updates.length === 0) return known
  const latest = new Map(known.map((call) => [call.id, call]))
  for (const call of updates) {
    // Events may arrive out of order, so do not replace a finished call with a running one.
    if (call.outcome === 'running' && hasEnded(latest.get(call.id))) continue
    latest.set(call.id, call)
  }
  return [...latest.values()].sort((a, b) => b.at - a.at).slice(0, limit)
}

const hasEnded = (call: CallView | undefined): boolean => call !== undefined && call.outcome !== 'running'
