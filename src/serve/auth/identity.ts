import type { ServerResponse } from 'node:http'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'

export type AuthIdentity = Pick<Caller, 'principal' | 'authenticated' | 'admin' | 'agents'> & StepUp

export interface StepUp {
  /** The challenge to send if the agent needs a scope that the token lacks. */
  stepUp?(agent: string): string | undefined
}

/** Throws or rejects for an invalid credential. `beforeSignature` runs before a signature is checked and may throw. */
export type Authenticate = (
  authorization: string | undefined,
  beforeSignature?: () => void,
) => AuthIdentity | Promise<AuthIdentity>

export const anonymous: AuthIdentity = { principal: 'anonymous', authenticated: false, admin: false, agents: '*' }
export const operator: AuthIdentity = { principal: 'token', authenticated: true, admin: true, agents: '*' }

/** Compares two credentials, or one credential at two times. */
export const hasSameRights = (one: AuthIdentity, other: AuthIdentity): boolean =>
  one.principal === other.principal &&
  one.admin === other.admin &&
  (one.agents === other.agents || JSON.stringify(one.agents) === JSON.stringify(other.agents))

/** How long a stream may outlive its credential. */
const checkMs = 5_000

interface AuthenticatedStream {
  readonly authorization: string | undefined
  /** The identity at the time the stream was opened. */
  readonly identity: AuthIdentity
  readonly response: ServerResponse
}

/** Closes streams whose key is revoked, whose token expires or whose rights change. */
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
