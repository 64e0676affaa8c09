import { timingSafeEqual } from 'node:crypto'
import { bearer, digest } from './credential.ts'
import { anonymous, type Identity, operator } from './identity.ts'
import { missing, wrong } from './refusals.ts'

type TokenHolder = (authorization: string | undefined) => Identity

/** One shared token, or none at all: then everybody who shows nothing is the same anonymous caller. */
export const authenticateToken = (token: string | undefined): TokenHolder =>
  token === undefined
    ? (authorization) => (authorization === undefined ? anonymous : unknown(authorization))
    : bearerTokens([[token, operator]])

/** Several tokens, each with an identity of its own. */
export function bearerTokens(tokens: readonly (readonly [token: string, identity: Identity])[]): TokenHolder {
  const known = tokens.map(([token, identity]) => ({ isIt: equals(token), identity }))
  return (authorization) => {
    if (authorization === undefined) throw missing()
    const actual = digest(bearer(authorization))
    let found: Identity | undefined
    // All are compared, so the position does not show in the time it takes.
    for (const { isIt, identity } of known) if (isIt(actual)) found = identity
    return found ?? unknown(authorization)
  }
}

/** Compares digests, which have one length: nothing about the token shows in the time it takes. */
export function equals(token: string): (actual: Buffer) => boolean {
  const expected = digest(token)
  return (actual) => timingSafeEqual(actual, expected)
}

/** Also where no credential is needed: whoever shows one wants to be somebody, and must not become nobody unawares. */
function unknown(authorization: string): never {
  bearer(authorization)
  throw unknownToken()
}

export const unknownToken = () =>
  wrong(
    'The token is not one that this gateway knows: send "Authorization: Bearer <token>" with the token it printed at start, or with a credential that its operator gave you.',
  )
