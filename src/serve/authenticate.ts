import { hash, timingSafeEqual } from 'node:crypto'
import type { Caller } from '../core/call.ts'
import { Refusal } from './refusal.ts'

/** Who a credential says its bearer is. */
export type Identity = Pick<Caller, 'principal' | 'authenticated' | 'admin' | 'agents'>

/** Turns an Authorization header into an identity, or throws a 401. A wrong credential never becomes anybody. */
export type Authenticate = (authorization: string | undefined) => Identity

const anonymous: Identity = { principal: 'anonymous', authenticated: false, admin: false, agents: '*' }
const operator: Identity = { principal: 'token', authenticated: true, admin: true, agents: '*' }

/** One shared token, or none at all: then everybody who reaches the door is the same anonymous caller. */
export const authenticateToken = (token: string | undefined): Authenticate =>
  token === undefined ? () => anonymous : bearerTokens([[token, operator]])

/** Several tokens, each with an identity of its own. */
export function bearerTokens(tokens: readonly (readonly [token: string, identity: Identity])[]): Authenticate {
  const known = tokens.map(([token, identity]) => ({ digest: digest(token), identity }))
  return (authorization) => {
    if (authorization === undefined) throw unauthorized('This gateway needs a token')
    const given = /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1]
    if (given === undefined) throw unauthorized('The Authorization header is not a bearer token')
    // Digests have one length and are all compared, so neither length nor position shows in the time it takes.
    const actual = digest(given)
    let found: Identity | undefined
    for (const { digest: expected, identity } of known) if (timingSafeEqual(actual, expected)) found = identity
    if (found === undefined) throw unauthorized('The token is not the one this gateway knows')
    return found
  }
}

const digest = (token: string) => hash('sha256', token, 'buffer')

const unauthorized = (reason: string) =>
  Refusal.of('AUTH_REQUIRED', `${reason}: send "Authorization: Bearer <token>" with the token it printed at start.`, {
    headers: { 'WWW-Authenticate': 'Bearer realm="toolway"' },
  })
