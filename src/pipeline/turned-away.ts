import { randomUUID } from 'node:crypto'
import type { Access } from '../core/access.ts'
import type { Audit } from '../core/audit.ts'
import type { Refusals } from './refusals.ts'

/**
 * Writes down who was turned away at a door (F11), for lack of a credential or for an agent they may not be. Whoever
 * has no credential must not be able to fill the disk, nor to drown those who have one.
 */
export function turnedAway(log: Audit, refusals: Refusals): Access['turnedAway'] {
  return ({ address, principal, asked, code }) => {
    const who = { agent: '(none)', principal: principal ?? 'unknown', ...(address !== undefined && { address }) }
    const counted = principal === undefined ? refusals.countStranger(who) : refusals.count(who)
    if (!counted.recorded) return
    const end = log.end({
      call: randomUUID(),
      ...who,
      operation: 'authenticate',
      ...(asked !== undefined && { asked }),
      write: false,
      brief: true,
      decision: 'DENY',
      reason: code.toLowerCase(),
      code,
      is_error: true,
      latency_ms: 0,
      ...counted.note,
    })
    // They are turned away whether or not that can be written down.
    end?.catch(() => {})
  }
}
