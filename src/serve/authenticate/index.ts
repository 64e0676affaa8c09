import type { Clock } from '../../core/clock.ts'
import type { ChallengeOf } from './challenge.ts'
import { bearer, formOf, rememberedDigests } from './credential.ts'
import { type Authenticate, anonymous, type Identity, operator } from './identity.ts'
import type { JwtVerifier } from './jwt.ts'
import { type KeySource, keyHolder } from './keys.ts'
import { missing, withChallenge, wrong } from './refusals.ts'
import { equals, unknownToken } from './token.ts'

export { type Authenticate, hasSameRights, type Identity } from './identity.ts'
export { createLifetimes } from './lifetime.ts'
export { scopesRule } from './refusals.ts'
export { type Admit, createAdmit, type FailureSettings, throttleRule } from './throttle.ts'
export { authenticateToken, bearerTokens } from './token.ts'

interface AuthenticateOptions {
  /** Undefined where no credential is needed: who shows none is anonymous then, and who shows a wrong one is refused. */
  readonly token: string | undefined
  readonly keys: KeySource
  /** For the tokens of an identity provider, where there is one. It is disposed of with the rest. */
  readonly verify?: JwtVerifier | undefined
  readonly clock: Clock
}

/** All the ways in: the gateway's token, API keys, and JSON Web Tokens of an identity provider. */
export function createAuthenticate(options: AuthenticateOptions): Authenticate & AsyncDisposable {
  const { token, keys, verify, clock } = options
  const isToken = token === undefined ? () => false : equals(token)
  const holderOf = keyHolder(keys, clock)
  const digestOf = rememberedDigests()

  /** Where nobody has a credential everybody may say who they are; where some have one, the others are the default. */
  const nobody = (): Identity => (verify !== undefined || keys.inUse ? { ...anonymous, agents: [] } : anonymous)

  const authenticate: Authenticate = (authorization, beforeSignature) => {
    if (authorization === undefined) {
      if (token === undefined) return nobody()
      throw missing()
    }
    const credential = bearer(authorization)
    const digested = digestOf(credential)
    // An operator may have chosen a token of any form, so it comes first; it is one exact value and nothing else.
    if (isToken(digested)) return operator
    const form = formOf(credential)
    if (form === 'key') return holderOf(digested)
    if (form === 'token') throw unknownToken()
    if (verify === undefined) throw wrong('JSON Web Tokens are not taken here: set auth.jwt, or send an API key.')
    return verify(credential, digested, beforeSignature)
  }
  return Object.assign(verify ? telling(authenticate, verify.challengeOf) : authenticate, {
    [Symbol.asyncDispose]: async () => verify?.[Symbol.asyncDispose](),
  })
}

/** Whoever is refused is told where tokens are to be had. */
function telling(authenticate: Authenticate, challengeOf: ChallengeOf): Authenticate {
  const tell = (thrown: unknown): never => {
    throw withChallenge(thrown, challengeOf)
  }
  return (authorization, beforeSignature) => {
    try {
      const identity = authenticate(authorization, beforeSignature)
      return identity instanceof Promise ? identity.catch(tell) : identity
    } catch (thrown) {
      return tell(thrown)
    }
  }
}
