import { randomUUID } from 'node:crypto'
import { systemClock } from '../../core/clock.ts'
import { createAuthenticate } from './authenticate.ts'
import type { Authenticate, AuthIdentity } from './identity.ts'

/** Authenticates by the gateway's token only, without API keys and JSON Web Tokens. */
export const authenticateToken = (token: string | undefined): Authenticate =>
  createAuthenticate({ token, keys: { inUse: false, find: () => undefined }, clock: systemClock })

/** Authenticates several people by a token each. All other credentials are rejected as by the gateway itself. */
export function bearerTokens(tokens: readonly (readonly [token: string, identity: AuthIdentity])[]): Authenticate {
  const known = new Map(tokens.map(([token, identity]) => [`Bearer ${token}`, identity]))
  const reject = authenticateToken(randomUUID())
  return (authorization) => known.get(authorization ?? '') ?? reject(authorization)
}
