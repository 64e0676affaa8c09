import { randomUUID } from 'node:crypto'
import type { Access } from '../core/access.ts'
import type { Audit } from '../core/audit.ts'
import type { Log } from '../core/log.ts'
import type { Refusals } from './refusals.ts'

/**
 * Writes down who was turned away at a door (F11), for lack of a credential, for an agent they may not be, or for a
 * message that breaks the protocol, and tells the operator. Whoever has no credential must not be able to fill the
 * disk, nor to drown those who have one: what is not recorded is not logged either.
 */
export function recordRejections(audit: Audit, refusals: Refusals, log: Log): Access['rejected'] {
  return ({ address, principal, asked, detail, malformed, code }) => {
    const who = { agent: '(none)', principal: principal ?? 'unknown', ...(address !== undefined && { address }) }
    const counted = principal === undefined ? refusals.countStranger(who, code) : refusals.count(who)
    if (!counted.recorded) return
    const reason = malformed ? 'malformed_request' : code.toLowerCase()
    const told = { code, address, principal, agent: asked, detail: detail && bounded(detail), ...counted.note }
    log.warn(told, malformed ? 'Refused a malformed request' : 'Refused a request')
    const end = audit.end({
      call: randomUUID(),
      ...who,
      operation: malformed ? 'malformed_request' : 'authenticate',
      ...(asked !== undefined && { asked }),
      ...(detail !== undefined && { detail: bounded(detail) }),
      write: false,
      brief: true,
      decision: malformed ? 'ERROR' : 'DENY',
      reason,
      code,
      is_error: true,
      latency_ms: 0,
      ...counted.note,
    })
    // They are turned away whether or not that can be written down.
    end?.catch(() => {})
  }
}

const maxDetail = 256

/** What a stranger sent is cut and escaped, so that it can neither fill a log nor pose as another line of it. */
const bounded = (text: string): string =>
  JSON.stringify(text.length > maxDetail ? `${text.slice(0, maxDetail)}…` : text).slice(1, -1)
