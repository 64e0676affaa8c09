import { ToolwayError } from '../../core/errors.ts'
import type { Challenge, RequestAuthorizer } from './authorization.ts'
import { type DiscoveredIssuer, discoverIssuer, issuerMetadata } from './discovery.ts'
import { type AuthDemand, type Grant, type GrantHolder, grantLock, type ProtectedServer } from './grants.ts'
import { obtainGrant, refreshGrant } from './tokens.ts'
import { isClientRejected, OAuthError } from './web.ts'

/** How long before its expiry a token is renewed: 30 seconds, but at most a quarter of its lifetime. */
const earlyMs = 30_000
const earlyPart = 0.25
/** How long Toolway relies on a rejection before it asks again. */
const believedMs = 60_000
/** How long a token is used before the stored grant is read again: another process may have signed in or out. */
const rereadMs = 3_000

/**
 * The credential for one server and grant holder, shared by its connections. Concurrent renewals are merged: within one
 * process they share a promise; across processes there is a lock, and the stored grant is checked before a renewal.
 */
export class Credential implements RequestAuthorizer {
  readonly #server: ProtectedServer
  /** Whether Toolway obtains tokens with the client's own credentials, without a person. */
  readonly #isOwn: boolean
  #grant: Grant | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #finding: Promise<Grant | undefined> | undefined
  #replacing: Promise<boolean> | undefined
  /** Why somebody has to sign in, and when that became known. */
  #required: { readonly error: ToolwayError; readonly at: number } | undefined
  /** When a new token was last requested although the old one had not expired. */
  #forcedAt = Number.NEGATIVE_INFINITY
  /** A grant that could not be stored, and the stored access token that it replaces. */
  #unwritten: { readonly grant: Grant; readonly instead: string } | undefined
  /** The authorization server's last rejection, and the token or demand that it was about. */
  #rejection: { readonly about: string; readonly error: ToolwayError; readonly at: number } | undefined

  constructor(server: ProtectedServer) {
    this.#server = server
    this.#isOwn = server.settings.grant === 'client_credentials'
  }

  get holder(): GrantHolder {
    return this.#server.holder
  }

  header(): string | undefined | Promise<string | undefined> {
    const known = this.#grant
    if (known && !this.#isEnding(known) && this.#isRecent(this.#readAt, rereadMs)) return bearerHeader(known)
    this.#finding ??= this.#find()
      .catch((error) => this.#goOn(error))
      .finally(() => {
        this.#finding = undefined
        this.#readAt = this.#now
      })
    return this.#finding.then((grant) => {
      if (grant) return bearerHeader(grant)
      const required = this.#grant ? undefined : this.#required
      if (required && this.#isRecent(required.at, believedMs)) throw required.error
      return undefined
    })
  }

  async refused(challenge: Challenge, sent: string | undefined): Promise<boolean> {
    if (challenge.status === 403 && challenge.error !== 'insufficient_scope') return false
    // A concurrent request has already renewed the token.
    if (this.#grant && bearerHeader(this.#grant) !== sent) return true
    this.#replacing ??= this.#replace(challenge, sent).finally(() => {
      this.#replacing = undefined
    })
    return this.#replacing
  }

  forget(): void {
    this.#grant = undefined
    this.#unwritten = undefined
  }

  async #find(): Promise<Grant | undefined> {
    const demand = await this.#demand()
    const stored = await this.#storedFor(demand)
    const usable = await this.#usable(stored)
    if (usable) return usable
    if (this.#isOwn && demand.issuer !== undefined) return this.#obtain(demand)
    this.#grant = undefined
    if (!stored) return undefined
    throw this.#require('needs a new sign-in: its token has expired')
  }

  /**
   * Falls back to the current token, if it has not expired, when the authorization server cannot be reached or the
   * stored grant cannot be read.
   */
  #goOn(error: unknown): Grant {
    const isTemporary = !(error instanceof ToolwayError) || error.kind.retryable
    if (isTemporary && this.#grant && !this.#isOver(this.#grant)) return this.#grant
    throw error
  }

  async #usable(grant: Grant | undefined): Promise<Grant | undefined> {
    if (grant && !this.#isEnding(grant)) return this.#take(grant)
    return grant?.refreshToken === undefined ? undefined : this.#refresh(grant)
  }

  #demand(): Promise<AuthDemand> {
    return this.#server.parts.grants.demandOf(this.holder)
  }

  async #storedFor({ issuer }: AuthDemand): Promise<Grant | undefined> {
    if (issuer === undefined) return undefined
    const written = await this.#server.parts.grants.grantOf(this.holder, issuer)
    return written && written.accessToken === this.#unwritten?.instead ? this.#unwritten.grant : written
  }

  async #replace(challenge: Challenge, sent: string | undefined): Promise<boolean> {
    const { grants } = this.#server.parts
    const before = await this.#demand()
    const stored = await this.#storedFor(before)
    if (stored && bearerHeader(stored) !== sent && !this.#isEnding(stored)) return this.#take(stored) !== undefined
    const isLacking = challenge.status === 403
    const demand = await this.#remember(before, challenge, isLacking ? (stored?.scopes ?? []) : undefined)
    if (!this.#isOwn && (isLacking || !stored))
      throw this.#require(
        isLacking ? `needs more scopes than were granted${naming(challenge.scopes)}` : 'needs a sign-in',
      )
    const isNew = (scope: string) => !before.more?.includes(scope) && !stored?.scopes.includes(scope)
    const asksMore = isLacking && challenge.scopes?.some(isNew)
    // A renewal does not help if the rejected token is new. An older one may have expired by the server's clock.
    if (!asksMore && stored && this.#isNew(stored) && this.#isRecent(this.#forcedAt, believedMs))
      throw this.#require('rejected a new token')
    this.#forcedAt = this.#now
    if (this.#isOwn) return (await this.#obtain(demand)) !== undefined
    const { issuer } = await this.#discover(demand)
    if (issuer.issuer === stored?.issuer) return (await this.#refresh(stored)) !== undefined
    // The server uses another authorization server now, which must not receive the old grant.
    await grants.demanded(this.holder, { ...demand, issuer: issuer.issuer })
    const other = await grants.grantOf(this.holder, issuer.issuer)
    this.#grant = undefined
    if (await this.#usable(other)) return true
    throw this.#require('needs a new sign-in: its authorization server has changed')
  }

  /** Stores the requirements from a server's challenge, for the next sign-in. */
  async #remember(before: AuthDemand, challenge: Challenge, had?: readonly string[]): Promise<AuthDemand> {
    const { resourceMetadata, scopes } = challenge
    const demand: AuthDemand = { ...before }
    if (resourceMetadata !== undefined) demand.resourceMetadata = resourceMetadata
    if (had) demand.more = [...new Set([...had, ...(scopes ?? [])])]
    else if (scopes) demand.scopes = [...scopes]
    if (JSON.stringify(demand) !== JSON.stringify(before)) await this.#server.parts.grants.demanded(this.holder, demand)
    return demand
  }

  /** Renews a grant under a cross-process lock, because using a refresh token twice may revoke the whole grant. */
  async #refresh(old: Grant): Promise<Grant> {
    const { grants, locks, log } = this.#server.parts
    await using _ = await locks.hold(grantLock(this.holder, old.issuer))
    const stored = await this.#storedFor(old)
    if (stored && stored.accessToken !== old.accessToken && !this.#isEnding(stored)) return this.#take(stored)
    const about = stored?.accessToken ?? ''
    this.#failIfRejected(about)
    try {
      if (!stored) throw new OAuthError('the grant was removed', { code: 'invalid_grant' })
      const metadata = await issuerMetadata(old.issuer, this.#server.parts.web, await this.#server.reach())
      const next = await refreshGrant(this.#server, stored, metadata)
      // Use the new grant even if it cannot be stored: only its refresh token is still valid.
      this.#take(next)
      const instead = stored === this.#unwritten?.grant ? this.#unwritten.instead : stored.accessToken
      this.#unwritten = { grant: next, instead }
      await grants.granted(this.holder, next)
      this.#unwritten = undefined
      log.debug({ server: this.holder.server }, 'token renewed')
      return next
    } catch (error) {
      const problem = asOAuthError(error)
      if (problem.unreachable && stored && !this.#isOver(stored)) return this.#take(stored)
      if (!problem.unreachable) this.#grant = undefined
      // Keep the grant after other errors: a wrong client secret, for example, can be corrected in the configuration.
      if (!problem.unreachable && problem.code === 'invalid_grant') await grants.ended(this.holder, old.issuer)
      if (isClientRejected(problem)) await grants.unregistered(this.holder.server, old.issuer, stored?.client.id)
      throw this.#reject(about, problem, 'needs a new sign-in')
    }
  }

  /** Obtains a grant with the client's own credentials. */
  async #obtain(demand: AuthDemand): Promise<Grant> {
    const { grants, locks } = this.#server.parts
    await using _ = await locks.hold(grantLock(this.holder, ''))
    const before = this.#grant
    const stored = await this.#storedFor(await this.#demand())
    if (stored && stored.accessToken !== before?.accessToken && !this.#isEnding(stored)) return this.#take(stored)
    const about = JSON.stringify(demand)
    this.#failIfRejected(about)
    try {
      const grant = await obtainGrant(this.#server, await this.#discover(demand), demand)
      await grants.demanded(this.holder, { ...demand, issuer: grant.issuer })
      await grants.granted(this.holder, grant)
      return this.#take(grant)
    } catch (error) {
      throw this.#reject(about, error, 'needs a token, but none could be obtained')
    }
  }

  /** Repeats a recent rejection instead of the request, which would fail again. */
  #failIfRejected(about: string): void {
    if (this.#rejection?.about === about && this.#isRecent(this.#rejection.at, believedMs)) throw this.#rejection.error
  }

  #reject(about: string, cause: unknown, why: string): ToolwayError {
    const error = this.#refusal(cause, why)
    if (!error.kind.retryable) this.#rejection = { about, error, at: this.#now }
    return error
  }

  #discover({ issuer, resourceMetadata }: AuthDemand): Promise<DiscoveredIssuer> {
    const challenge = resourceMetadata === undefined ? undefined : { status: 401, resourceMetadata }
    return discoverIssuer(this.#server, issuer, challenge).catch((error) => {
      throw this.#refusal(error, 'does not allow a sign-in')
    })
  }

  #take(grant: Grant): Grant {
    this.#required = undefined
    this.#grant = grant
    return grant
  }

  /** The error if no token could be obtained: a retry may help if a host could not be reached. */
  #refusal(cause: unknown, why: string): ToolwayError {
    const { unreachable, message } = asOAuthError(cause)
    if (!unreachable) return this.#require(`${why}: ${message}`, cause)
    const { server } = this.holder
    const sentence = `No token for ${server}: ${message}. Try again later.`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, unsent: true, cause })
  }

  /** The error if there is no valid token. Callers and operators read it, so it says who can do what. */
  #require(why: string, cause?: unknown): ToolwayError {
    const { server, principal } = this.holder
    const whose = principal === '' ? '' : ` --principal ${principal}`
    const remedy = this.#isOwn
      ? `The operator has to check mcpServers.${server}.auth`
      : `The operator signs in with: toolway auth ${server}${whose}`
    const sentence = `${server} ${why}. ${remedy}`
    const error = new ToolwayError('AUTH_REQUIRED', sentence, { server, auditReason: 'server_needs_auth', cause })
    if (this.#required?.error.message !== error.message) this.#server.parts.log.warn({ server }, error.message)
    this.#required = { error, at: this.#now }
    return error
  }

  get #now(): number {
    return this.#server.parts.clock.monotonic()
  }

  #isRecent(at: number, withinMs: number): boolean {
    return this.#now - at < withinMs
  }

  #isEnding({ expiresAt, grantedAt }: Grant): boolean {
    if (expiresAt === undefined) return false
    return expiresAt - Math.min(earlyMs, (expiresAt - grantedAt) * earlyPart) <= this.#server.parts.clock.now()
  }

  #isNew({ expiresAt = Number.POSITIVE_INFINITY, grantedAt }: Grant): boolean {
    return this.#server.parts.clock.now() < grantedAt + Math.min(believedMs, (expiresAt - grantedAt) * earlyPart)
  }

  #isOver({ expiresAt }: Grant): boolean {
    return expiresAt !== undefined && expiresAt <= this.#server.parts.clock.now()
  }
}

const bearerHeader = ({ accessToken }: Grant): string => `Bearer ${accessToken}`

/** Formats scopes for a message. They are truncated, because the server chooses the text and callers may be models. */
const naming = (scopes: readonly string[] | undefined): string => (scopes ? ` (${scopes.join(' ').slice(0, 200)})` : '')

function asOAuthError(error: unknown): OAuthError {
  if (error instanceof OAuthError) return error
  throw error
}
