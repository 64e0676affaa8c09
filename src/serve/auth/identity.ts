import type { ServerResponse } from 'node:http'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'

/** Who a credential says its bearer is. */
export type AuthIdentity = Pick<Caller, 'principal' | 'authenticated' | 'admin' | 'agents'> & StepUp

/** A bearer that can ask its identity provider for more. */
export interface StepUp {
  /** What to tell it when it wants to be an agent that another scope would let it be. */
  stepUp?(agent: string): string | undefined
}

/**
 * Turns an Authorization header into an identity, or refuses it. A wrong credential never becomes anybody.
 * `beforeSignature` is called before a signature is checked, and may refuse by throwing.
 */
export type Authenticate = (
  authorization: string | undefined,
  beforeSignature?: () => void,
) => AuthIdentity | Promise<AuthIdentity>

export const anonymous: AuthIdentity = { principal: 'anonymous', authenticated: false, admin: false, agents: '*' }
export const operator: AuthIdentity = { principal: 'token', authenticated: true, admin: true, agents: '*' }

/** Whether two credentials of one principal, or one at two times, are good for the same. */
export const hasSameRights = (one: AuthIdentity, other: AuthIdentity): boolean =>
  one.principal === other.principal &&
  one.admin === other.admin &&
  (one.agents === other.agents || JSON.stringify(one.agents) === JSON.stringify(other.agents))

/** How long a stream may outlive its credential. */
const checkMs = 5_000

interface AuthenticatedStream {
  readonly authorization: string | undefined
  /** What the credential was good for when the stream was opened. */
  readonly identity: AuthIdentity
  readonly response: ServerResponse
}

/**
 * Ends streams that outlive their credential. A request is checked once and answered; a stream stays open for hours,
 * in which its key may be revoked, its token expire, or either come to mean something else.
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
