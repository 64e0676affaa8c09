import type { ServerResponse } from 'node:http'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'

/** The identity that a credential proves. */
export type AuthIdentity = Pick<Caller, 'principal' | 'authenticated' | 'admin' | 'agents'> & StepUp

/** A caller that can get more scopes from its identity provider. */
export interface StepUp {
  /** The challenge for an agent that needs another scope. */
  stepUp?(agent: string): string | undefined
}

/**
 * Turns an Authorization header into an identity, or throws. `beforeSignature` is called before a signature is checked,
 * and may reject by throwing.
 */
export type Authenticate = (
  authorization: string | undefined,
  beforeSignature?: () => void,
) => AuthIdentity | Promise<AuthIdentity>

export const anonymous: AuthIdentity = { principal: 'anonymous', authenticated: false, admin: false, agents: '*' }
export const operator: AuthIdentity = { principal: 'token', authenticated: true, admin: true, agents: '*' }

/** Whether two credentials of a principal, or one credential at two times, grant the same rights. */
export const hasSameRights = (one: AuthIdentity, other: AuthIdentity): boolean =>
  one.principal === other.principal &&
  one.admin === other.admin &&
  (one.agents === other.agents || JSON.stringify(one.agents) === JSON.stringify(other.agents))

/** How long a stream may outlive its credential. */
const checkMs = 5_000

interface AuthenticatedStream {
  readonly authorization: string | undefined
  /** The identity when the stream was opened. */
  readonly identity: AuthIdentity
  readonly response: ServerResponse
}

/**
 * Ends streams that outlive their credential: while a stream is open, its key may be revoked, its token expire, or its
 * rights change.
 */
export const createCredentialWatch =
  (authenticate: Authenticate, clock: Clock): ((stream: AuthenticatedStream) => void) =>
  ({ authorization, identity, response }) => {
    const check = async () => {
      try {
        if (hasSameRights(await authenticate(authorization), identity)) timer = response.closed ? timer : start()
        else response.destroy()
      } catch {
        response.destroy()
      }
    }
    const start = () => clock.after(checkMs, () => void check())
    let timer = start()
    response.once('close', () => timer[Symbol.dispose]())
  }
