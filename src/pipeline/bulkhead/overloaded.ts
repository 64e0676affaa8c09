import type { Call } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { callAgain } from '../call-again.ts'
import { backlogMs, hasPlace, type Places } from './places.ts'

/** What a call needs a place of. */
export interface Needs {
  readonly whole: Places
  readonly server: Places | undefined
  readonly agent: Places | undefined
}

/** Sooner than this nobody should come back, however quick the calls are; later than that is a guess about nothing. */
const soonestMs = 100
const latestMs = 60_000

/** Refuses a call for which there is no place (B7): what is full, and when there may be room again. */
export function overloaded({ entry, caller }: Call, { whole, server, agent }: Needs, why: string): ToolwayError {
  const full: (readonly [string, Places])[] = []
  if (server && !hasPlace(server)) full.push([`The server ${entry.server}`, server])
  if (agent && !hasPlace(agent)) full.push([`The agent ${caller.agent}`, agent])
  if (full.length === 0 || !hasPlace(whole)) full.push(['Toolway', whole])
  const [who, { limit }] = full[0] as (typeof full)[number]
  const backlog = Math.max(...full.map(([, places]) => backlogMs(places)))
  const retryAfterMs = Math.ceil(Math.min(Math.max(backlog, soonestMs), latestMs))
  const busy = `${who} has ${limit === 1 ? 'a call' : `${limit} calls`} in flight, as many as allowed`
  const sentence = `${busy}, and ${why}. Nothing was sent: ${callAgain(retryAfterMs)}.`
  return new ToolwayError('OVERLOADED', sentence, { server: entry.server, retryAfterMs })
}
