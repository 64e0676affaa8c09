import type { CallView } from '../../../src/serve/admin/contract.ts'

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

/** Conditions as they are in the address. Empty ones match all calls. */
export interface CallFilter {
  readonly agent: string
  readonly server: string
  readonly name: string
  readonly operation: string
  readonly outcome: string
  readonly code: string
  readonly parent: string
  /** A number of milliseconds. */
  readonly slowerThan: string
  /** Times in milliseconds since the epoch. */
  readonly from: number | undefined
  readonly to: number | undefined
  /** Text to search for in the name, server, agent, principal, operation, code and ID. */
  readonly text: string
}

const exactly = ['agent', 'server', 'name', 'operation', 'outcome', 'code', 'parent'] as const

/** The calls that match a filter. Empty conditions match all calls. */
export function filterCalls(calls: readonly CallView[], filter: CallFilter): readonly CallView[] {
  const text = filter.text.trim().toLowerCase()
  const { slowerThan, from = 0, to = Number.POSITIVE_INFINITY } = filter
  return calls.filter(
    (call) =>
      exactly.every((field) => filter[field] === '' || filter[field] === (call[field] ?? '')) &&
      (slowerThan === '' || (call.ms !== null && call.ms >= Number(slowerThan))) &&
      call.at >= from &&
      call.at < to &&
      (text === '' ||
        [`${call.server}.${call.name}`, call.agent, call.principal, call.operation, call.code ?? '', call.id].some(
          (part) => part.toLowerCase().includes(text),
        )),
  )
}
