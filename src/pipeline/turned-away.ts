import { randomUUID } from 'node:crypto'
import type { Access } from '../core/access.ts'
import type { Audit } from '../core/audit.ts'
import type { Clock } from '../core/clock.ts'

/** Whoever has no credential must not be able to fill the disk: beyond this a burst is not written down. */
const mostASecond = 10

/** Writes down who was turned away at a door (F11), for lack of a credential or for an agent they may not be. */
export function turnedAway(log: Audit, clock: Clock): Access['turnedAway'] {
  let second = 0
  let written = 0
  return ({ address, principal = 'unknown', code }) => {
    const now = Math.floor(clock.now() / 1000)
    if (now !== second) written = 0
    second = now
    if (++written > mostASecond) return
    const end = log.end({
      call: randomUUID(),
      agent: '(none)',
      principal,
      ...(address !== undefined && { address }),
      operation: 'authenticate',
      write: false,
      decision: 'DENY',
      reason: code.toLowerCase(),
      code,
      is_error: true,
      latency_ms: 0,
    })
    // They are turned away whether or not that can be written down.
    end?.catch(() => {})
  }
}
