import { hash } from 'node:crypto'
import {
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose'
import type { JwtConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import type { Log } from '../../core/log.ts'
import { createHttpClient, type HttpClient } from '../../egress/http-client.ts'
import { repeatsKey } from '../../json/json-text.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { createLazy, setBounded } from '../../lib/memoize.ts'
import { isProtected } from '../../lib/url.ts'
import { HttpError } from '../errors.ts'
import {
  type ChallengeOf,
  cannotVerify,
  challengeFor,
  expiredCredential,
  insufficientScope,
  invalidCredential,
} from './challenge.ts'
import type { AuthIdentity } from './identity.ts'

/** Accepted signature algorithms, all asymmetric: with a symmetric one, the public key could be used to sign tokens. */
const signatureAlgorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

const clockToleranceMs = 30_000

const maxTries = 16

export interface JwtVerifier extends AsyncDisposable {
  (token: string, digest: Buffer, beforeSignature?: () => void): AuthIdentity | Promise<AuthIdentity>
  readonly challengeOf: ChallengeOf
}

export function createJwtVerifier(options: { config: JwtConfig; clock: Clock; log: Log }): JwtVerifier {
  const { config, clock, log } = options
  const { issuer, audience, jwksUrl } = config
  const challengeOf = challengeFor(config)
  let verified = createVerifiedTokens(clock)
  const keySet = createKeySet(jwksUrl, clock, log, () => {
    verified = createVerifiedTokens(clock)
  })

  const claimsOf = async (token: string, keys: PublishedKeys): Promise<JWTPayload> => {
    const checks: JWTVerifyOptions = {
      algorithms: signatureAlgorithms,
      issuer,
      audience,
      requiredClaims: ['exp', 'sub'],
      clockTolerance: clockToleranceMs / 1000,
      currentDate: new Date(clock.now()),
    }
    try {
      return checkClaims(token, await jwtVerify(token, keys.find, checks))
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      return checkClaims(token, await verifyByAnyKey(token, error, checks))
    }
  }

  const identify = async (token: string, digest: string, keys: PublishedKeys): Promise<AuthIdentity> => {
    // Use the current cache: if the keys change during verification, it is discarded together with this result.
    const kept = verified
    const claims = await claimsOf(token, keys)
    const identity = identityOfClaims(claims, config, challengeOf)
    kept.keep(digest, identity, (claims.exp as number) * 1000 + clockToleranceMs)
    return identity
  }

  const verify = async (token: string, digest: string): Promise<AuthIdentity> => {
    try {
      const keys = await keySet.current()
      return await identify(token, digest, keys).catch(async (error: unknown) => {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        const renewed = await keySet.renewed()
        if (renewed === keys) throw error
        return identify(token, digest, renewed)
      })
    } catch (error) {
      throw error instanceof HttpError ? error : tokenRefusal(error, config, log)
    }
  }

  const verifier = (token: string, digested: Buffer, beforeSignature?: () => void) => {
    const digest = digested.toString('base64url')
    const known = verified.get(digest)
    if (known) return known
    beforeSignature?.()
    return verify(token, digest)
  }
  return Object.assign(verifier, { challengeOf, [Symbol.asyncDispose]: () => keySet[Symbol.asyncDispose]() })
}

/** The claims of a token with a valid signature, after checks that jose does not make. */
function checkClaims(token: string, { payload, protectedHeader }: JWTVerifyResult): JWTPayload {
  const [header = '', claims = ''] = token.split('.')
  if (repeats(header, protectedHeader) || repeats(claims, payload)) {
    throw new errors.JWTClaimValidationFailed('repeated member', payload, repeatedClaim)
  }
  if (isOtherKind(protectedHeader.typ)) throw new errors.JWTClaimValidationFailed('other kind', payload, 'typ')
  // jose accepts infinity (1e999). Also rejects milliseconds: such a token would practically never expire.
  if (!((payload.exp as number) <= maxExpiry)) throw new errors.JWTClaimValidationFailed('exp', payload, 'exp')
  return payload
}

const repeatedClaim = 'repeated'

/** Whether a part of a token repeats a member: parsers disagree on which of the values counts. */
const repeats = (part: string, value: object): boolean => repeatsKey(Buffer.from(part, 'base64url'), value)

/** The end of the year 9999, in seconds. Some providers use it for tokens that do not expire. */
const maxExpiry = 253_402_300_799

/** Whether `typ` names another kind of token, such as `dpop+jwt`. Access tokens have `at+jwt`, `JWT` or none. */
const isOtherKind = (typ: unknown): boolean =>
  typeof typ === 'string' && typ.includes('+') && !/(?:^|[/-])at\+jwt$/i.test(typ)

async function verifyByAnyKey(
  token: string,
  candidates: errors.JWKSMultipleMatchingKeys,
  checks: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  let tries = 0
  for await (const key of candidates) {
    if (++tries > maxTries) break
    try {
      return await jwtVerify(token, key, checks)
    } catch (error) {
      // Any error that is not from jose is about a key that cannot be used, such as an RSA key of 1024 bits.
      const isAboutKey = !(error instanceof errors.JOSEError) || error instanceof errors.JWSSignatureVerificationFailed
      if (!isAboutKey) throw error
    }
  }
  throw new errors.JWSSignatureVerificationFailed()
}

/** The error for a rejected token. Neither the error nor the log contains the token. */
function tokenRefusal(error: unknown, config: JwtConfig, log: Log): HttpError {
  const code = error instanceof errors.JOSEError ? error.code : undefined
  // The message of an unexpected error is not logged, because it may quote the token.
  const reason = error instanceof Error ? error.name : typeof error
  if (code === undefined) log.warn({ reason }, 'rejected a JSON Web Token that could not be checked')
  else log.debug({ reason: code }, 'rejected a JSON Web Token')
  // jose checks claims after the signature, so the signature of a token with an invalid claim is valid.
  const signed = error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed
  return signed ? expiredCredential(sentenceFor(error, config)) : invalidCredential(sentenceFor(error, config))
}

function sentenceFor(error: unknown, { issuer, audience }: JwtConfig): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired: get a new one from your identity provider.'
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason } = error
    if (reason === 'missing')
      return `The token has no ${claim} claim: ask your identity provider for a token that has it.`
    if (claim === repeatedClaim)
      return 'The token has the same member twice in its header or claims: ask your identity provider for another token.'
    if (claim === 'typ') return 'The token is not an access token (see its typ header): use an access token instead.'
    if (claim === 'nbf') return "The token is not valid yet: wait, or correct this machine's clock."
    if (claim === 'iss') return `The token was issued by a different issuer: get one from ${issuer}.`
    if (claim === 'aud') return `The token is for a different audience: get one for ${audience}.`
    return `The token's ${claim} claim is invalid: get a new token from your identity provider.`
  }
  if (error instanceof errors.JWKSNoMatchingKey) {
    return 'The token is signed with a key that its issuer has not published: get a new one from your identity provider.'
  }
  return 'The token cannot be verified: get a new one from your identity provider.'
}

/** Valid agent names; the same pattern as in the configuration. */
const agentName = /^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,127}$/

/** The identity that a verified token proves. It is never an admin: only the gateway's operator grants admin rights. */
function identityOfClaims(claims: JWTPayload, config: JwtConfig, challengeOf: ChallengeOf): AuthIdentity {
  const { issuer, agentClaim, scopes } = config
  const principal = `jwt:${new URL(issuer).host}:${subject(claims)}`
  const known = { principal, authenticated: true, admin: false }
  const named = agentsInClaim(claims, agentClaim)
  if (Object.keys(scopes).length === 0) return { ...known, agents: named }
  const granted = scopesOfClaims(claims).flatMap((scope) => (Object.hasOwn(scopes, scope) ? (scopes[scope] ?? []) : []))
  const agents = [...new Set([...named, ...granted])]
  // If scopes are configured, reject a token that has none of them: its holder must not get the default agent.
  if (agents.length === 0) {
    const sentence = `The token has none of the scopes that this gateway accepts: request one of ${Object.keys(scopes).join(', ')}.`
    throw insufficientScope(sentence, challengeOf({ error: 'insufficient_scope' }))
  }
  const stepUp = (agent: string): string | undefined => {
    const lacking = Object.keys(scopes).filter((scope) => scopes[scope]?.includes(agent))
    // Request only the first scope: any one of them is sufficient.
    return lacking[0] && challengeOf({ error: 'insufficient_scope', scopes: [lacking[0]] })
  }
  return { ...known, agents, stepUp }
}

/** A token's scopes. `scope` is a string (RFC 9068); some providers send a list in `scp` instead. */
function scopesOfClaims({ scope, scp }: JWTPayload): readonly string[] {
  const texts = [scope, scp].flat().filter((part) => typeof part === 'string')
  return texts.flatMap((part) => part.split(' ')).filter((part) => part !== '')
}

/** A token's subject, hashed if it is long or unprintable, so that principals stay short, printable and unique. */
function subject({ sub }: JWTPayload): string {
  if (typeof sub !== 'string' || sub === '') {
    throw expiredCredential('The token has no subject: ask your identity provider for one with a sub claim.')
  }
  return /^[\x21-\x7d][\x21-\x7e]{0,199}$/.test(sub) ? sub : `~${hash('sha256', sub, 'base64url')}`
}

/**
 * The agents named in a claim. The claim may contain groups, so names that no agent can have are ignored. A claim without
 * any agent name is rejected: the token's holder must not get the default agent.
 */
function agentsInClaim(claims: JWTPayload, claim: string): readonly string[] {
  const value = claimOf(claims, claim)
  if (value === undefined) return []
  const names: readonly unknown[] = Array.isArray(value) ? value : [value]
  // Keycloak begins the path of a group with a slash.
  const agents = names.every((name) => typeof name === 'string')
    ? names.map((name) => name.replace(/^\//, '')).filter((name) => agentName.test(name))
    : []
  if (agents.length > 0) return agents
  throw expiredCredential(
    `The token's ${claim} claim is neither an agent name nor a list of agent names: ask your identity provider for another token.`,
  )
}

/** The claim with this name, else the member at this path, such as `realm_access.roles`. */
function claimOf(claims: JWTPayload, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  const step = (value: unknown, key: string): unknown =>
    isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return name.split('.').reduce<unknown>(step, claims)
}

const maxEntries = 10_000
const maxVerifiedMs = 5 * 60_000

/** A cache of recently verified tokens, by digest. Verifying a signature costs a hundred times as much as a lookup. */
export function createVerifiedTokens(clock: Clock, limit = maxEntries) {
  // Entries, the least recently used first, because `get` moves an entry to the end.
  const entries = new Map<string, { identity: AuthIdentity; until: number; keptUntil: number }>()
  return {
    get(digest: string): AuthIdentity | undefined {
      const entry = entries.get(digest)
      if (entry === undefined) return undefined
      entries.delete(digest)
      if (entry.until <= clock.now() || entry.keptUntil <= clock.monotonic()) return undefined
      entries.set(digest, entry)
      return entry.identity
    },
    /** Keeps an identity until `until`, but no longer than `maxMs`, because the provider may revoke its keys. */
    keep(digest: string, identity: AuthIdentity, until: number): void {
      setBounded(entries, digest, { identity, until, keptUntil: clock.monotonic() + maxVerifiedMs }, limit)
    },
  }
}

/** Age at which cached keys are fetched again. */
const freshKeysMs = 10 * 60_000

/** Maximum age of keys that are used while the provider is unreachable. */
const staleMs = 60 * 60_000

/** Minimum time between fetches for unknown keys. It protects the provider, because anyone can invent key ids. */
const coolDownMs = 30_000

/** Minimum time between a failed fetch and the next one. */
const keyRetryMs = 10_000

/** An identity provider's published keys, fetched on first use. `changed` is called when they differ from before. */
function createKeySet(url: string, clock: Clock, log: Log, changed: () => void) {
  const address = new URL(url)
  // Anyone who can replace the keys in transit can impersonate anyone.
  if (!isProtected(address)) {
    throw new Error('auth.jwt.jwksUrl must start with https:// (http:// is accepted for loopback addresses only).')
  }
  const client = createLazy(async () => createHttpClient(address, { connections: 1 }))
  let kept: { readonly keys: PublishedKeys; readonly since: number } | undefined
  let fetchedAt = Number.NEGATIVE_INFINITY
  let failed = false
  let closed = false
  let fetching: Promise<void> | undefined

  const update = async () => {
    try {
      const text = await fetchKeySet(await client.get(), address, clock)
      const keys = kept?.keys.text === text ? kept.keys : { find: createLocalJWKSet(parseKeySet(text)), text }
      if (keys !== kept?.keys) changed()
      kept = { keys, since: clock.monotonic() }
      failed = false
    } catch (cause) {
      failed = true
      const reason = cause instanceof Error ? cause.message : String(cause)
      if (!closed) log.warn({ url, reason }, `cannot fetch the identity provider's keys: ${reason}`)
    }
    fetchedAt = clock.monotonic()
    fetching = undefined
  }
  const fetchOnce = () => {
    fetching ??= update()
    return fetching
  }
  const age = () => (kept === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - kept.since)
  const sinceFetch = () => clock.monotonic() - fetchedAt

  const usable = (): PublishedKeys => {
    if (kept !== undefined && age() < staleMs) return kept.keys
    throw cannotVerify(keyRetryMs - sinceFetch())
  }

  return {
    /** The current keys. Throws or rejects with a 503 if no recent keys are cached and none can be fetched. */
    current(): PublishedKeys | Promise<PublishedKeys> {
      if (age() < freshKeysMs || (failed && sinceFetch() < keyRetryMs)) return usable()
      return fetchOnce().then(usable)
    },
    /** Fetches the keys again, but at most once every `coolDownMs`. Called when a token names an unknown key. */
    async renewed(): Promise<PublishedKeys> {
      if (fetching !== undefined || sinceFetch() >= (failed ? keyRetryMs : coolDownMs)) await fetchOnce()
      // The provider is unreachable and the key may be new, so do not report the token as invalid.
      if (failed) throw cannotVerify(keyRetryMs - sinceFetch())
      return usable()
    },
    async [Symbol.asyncDispose]() {
      closed = true
      await (await client.loaded())?.[Symbol.asyncDispose]()
    },
  }
}

interface PublishedKeys {
  readonly find: JWTVerifyGetKey
  /** The response text, compared to detect changes. */
  readonly text: string
}

const keySetTimeoutMs = 5_000

const maxKeySetBytes = 256 * 1024

/** Fetches the key set without following redirects. Time and size are limited. */
async function fetchKeySet(client: HttpClient, address: URL, clock: Clock): Promise<string> {
  const late = () => new Error(`no answer within ${keySetTimeoutMs / 1000} s (a fixed limit)`)
  using limit = deadline(clock, keySetTimeoutMs, late)
  const headers = { accept: 'application/jwk-set+json, application/json' }
  const request = { method: 'GET', path: address.pathname + address.search, headers, signal: limit.signal } as const
  const accepts = (status: number) => status === 200
  const bounds = { maxBytes: maxKeySetBytes, tooLarge: keySetTooLarge, accepts }
  const { status, text } = await client.fetchText(request, bounds)
  if (text === undefined) throw new Error(`HTTP ${status} instead of 200`)
  return text
}

const keySetTooLarge = () => new Error(`the key set is larger than ${maxKeySetBytes / 1024} KiB`)

function parseKeySet(text: string) {
  try {
    return jsonValue(text) as JSONWebKeySet
  } catch {
    throw new Error('the key set is not JSON')
  }
}
