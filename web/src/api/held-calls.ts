import type { CallView } from '../../../src/serve/admin/contract.ts'

/** A list of calls that does not move while somebody looks at it. */
export interface HeldCalls {
  readonly calls: readonly CallView[]
  /** When the newest of them began; calls loaded later are shown only if they are older. */
  readonly newestAt: number
}

export const holdCalls = (calls: readonly CallView[]): HeldCalls => ({
  calls,
  newestAt: calls[0]?.at ?? Number.POSITIVE_INFINITY,
})

/**
 * The held calls with their current outcomes, and those that have come since. Calls that began until `openAt` count as
 * held: a call that somebody opens may not have reached the list yet. Calls that ran when the list was held, but are
 * neither live nor loaded now, are dropped: the gateway does not know them since a restart. Unless `isAll`, those that
 * began before all that are loaded stay: so many have come since that they are not among the latest.
 */
export function updateHeld(
  { calls }: HeldCalls,
  live: readonly CallView[],
  loaded: readonly CallView[],
  openAt = Number.NEGATIVE_INFINITY,
  isAll = true,
): { readonly calls: readonly CallView[]; readonly fresh: readonly CallView[] } {
  const latest = new Map([...loaded, ...live].map((call) => [call.id, call]))
  const known = new Set(calls.map(({ id }) => id))
  const others = live.filter(({ id }) => !known.has(id))
  const since = isAll ? Number.NEGATIVE_INFINITY : (loaded.at(-1)?.at ?? Number.NEGATIVE_INFINITY)
  const held = calls.flatMap((call) =>
    call.outcome === 'running' ? (latest.get(call.id) ?? (call.at < since ? call : [])) : call,
  )
  return {
    calls: [...others.filter(({ at }) => at <= openAt), ...held],
    fresh: others.filter(({ at }) => at > openAt),
  }
}
