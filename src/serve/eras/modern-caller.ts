import { hash } from 'node:crypto'
import type { Caller } from '../../core/call.ts'
import type { Envelope } from './envelope.ts'

/**
 * The caller of one request. There are no sessions in the stateless era; what servers keep for a caller is kept under
 * what stays the same from one request to the next: who it is, as which agent, and with which program.
 */
export function modernCaller(base: Omit<Caller, 'session' | 'capabilities'>, envelope: Envelope): Caller {
  const { capabilities, client } = envelope
  const key = JSON.stringify([base.principal, base.agent, client?.name, client?.version])
  return { ...base, session: `modern-${hash('sha256', key, 'base64url').slice(0, 22)}`, capabilities }
}
