import type { Peer } from '../core/call.ts'
import type { LogLevel } from '../core/capabilities.ts'
import { type ToolwayError, UnsupportedRequest } from '../core/errors.ts'
import type { Json } from '../core/json.ts'
import { capabilityFor } from '../wire/defined-members.ts'
import { notificationBytes } from '../wire/message.ts'
import type { Asks } from './asks.ts'
import type { Params } from './inbound.ts'
import { isWanted } from './log-level.ts'

/** Whoever is told things and asked questions: what it can be asked for, and what it wants to hear. */
export interface Listener {
  readonly capabilities: Params
  readonly asks: Asks
  readonly logLevel: LogLevel | undefined
}

/** The way to a session's client outside any request; a question waits no longer than the session lasts. */
export const sessionPeer = (session: () => Listener, tell: (message: Buffer) => boolean, ended: AbortSignal): Peer => ({
  rounds: false,
  get logLevel() {
    return session().logLevel
  },
  notify(method, params) {
    if (isHeard(session(), method, params)) tell(notificationBytes(method, params))
  },
  ask(method, params, signal) {
    const refused = undeclared(session(), method)
    if (refused !== undefined) return Promise.reject(refused)
    return session().asks.ask(tell, method, params, AbortSignal.any([signal, ended]))
  },
})

/** A client that has said nothing gets whatever servers send: nothing is lost on the way. */
export const isHeard = ({ logLevel }: Listener, method: string, params: Json): boolean =>
  method !== 'notifications/message' || logLevel === undefined || isWanted(logLevel, params)

/** Why a client cannot be asked for this, if it cannot. */
export function undeclared(listener: Listener, method: string): ToolwayError | undefined {
  const capability = capabilityFor.get(method)
  if (capability === undefined) return new UnsupportedRequest(`MCP defines no request ${method} to clients.`)
  if (listener.capabilities[capability] !== undefined) return undefined
  const sentence = `The caller's client cannot be asked for ${method}: it did not declare the capability "${capability}".`
  return new UnsupportedRequest(sentence)
}
