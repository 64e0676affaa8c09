import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Challenge, RequestAuthorizer } from './authorization.ts'
import { type DiscoveredIssuer, discoverIssuer, type IssuerMetadata, issuerMetadata } from './discovery.ts'
import { type AuthDemand, type Grant, type GrantHolder, grantLock } from './grants.ts'
import { isClientRejected, OAuthError } from './oauth-error.ts'
import { type OAuthParts, type OAuthSettings, obtainGrant, onlyIssuer, refreshGrant } from './tokens.ts'
import { reachOf } from './web.ts'

/** How long before its expiry a token is renewed: 30 seconds, but at most a quarter of its lifetime. */
const earlyMs = 30_000
const earlyPart = 0.25
/** How long Toolway relies on a rejection or an issuer's metadata before it asks again. */
const believedMs = 60_000
/** How long a token is used before the stored grant is read again: another process may have signed in or out. */
const rereadMs = 3_000

/** A credential that can be dropped when its grant is removed. */
export interface Credential extends RequestAuthorizer {
  drop(): void
}

/**
 * The credential for one server and grant holder, shared by its connections. Concurrent renewals are merged: within one
 * process they share a promise; across processes there is a lock, and the stored grant is checked before a renewal.
 */
export function createCredential(
  options: OAuthParts & { readonly holder: GrantHolder; readonly settings: OAuthSettings; readonly log: Log },
): Credential {
  const { holder, settings, grants, locks, web, rangeOf, clock, log } = options
  const server = new URL(holder.url)
  const itself = settings.grant === 'client_credentials'
  let held: Grant | undefined
  /** When the stored grant was last read. */
  let readAt = Number.NEGATIVE_INFINITY
  let finding: Promise<Grant | undefined> | undefined
  let replacing: Promise<boolean> | undefined
  /** Why there is no token, and when that became known. */
  let wanted: { readonly error: ToolwayError; readonly at: number } | undefined
  /** When a new token was last requested although the old one had not expired. */
  let forcedAt = Number.NEGATIVE_INFINITY
  /** A grant that could not be stored, and the stored access token that it replaces. */
  let unwritten: { readonly grant: Grant; readonly instead: string } | undefined
  /** The authorization server's last rejection, and the token or demand that it was about. */
  let rejection: { readonly about: string; readonly error: ToolwayError; readonly at: number } | undefined
  let known: { readonly metadata: IssuerMetadata; readonly at: number } | undefined

  return {
    header() {
      if (held && !isEnding(held) && clock.monotonic() - readAt < rereadMs) return bearer(held)
      finding ??= found()
        .catch(goOn)
        .finally(() => {
          finding = undefined
          readAt = clock.monotonic()
        })
      return finding.then((grant) => {
        if (grant) return bearer(grant)
        if (wanted && clock.monotonic() - wanted.at < believedMs) throw wanted.error
        return undefined
      })
    },
    async refused(challenge, sent) {
      if (challenge.status === 403 && challenge.error !== 'insufficient_scope') return false
      // A concurrent request has already renewed the token.
      if (held && bearer(held) !== sent) return true
      replacing ??= replaced(challenge, sent).finally(() => {
        replacing = undefined
      })
      return replacing
    },
    drop() {
      held = undefined
      unwritten = undefined
    },
  }

  async function found(): Promise<Grant | undefined> {
    const demand = await grants.demandOf(holder)
    const kept = await keptFor(demand)
    const good = await alive(kept)
    if (good) return good
    if (itself && demand.issuer !== undefined) return obtain(demand)
    held = undefined
    if (!kept) return undefined
    throw want('needs a new sign-in: its token has expired')
  }

  /**
   * Falls back to the current token, if it has not expired, when the authorization server cannot be reached or the
   * stored grant cannot be read.
   */
  function goOn(error: unknown): Grant {
    const isTemporary = !(error instanceof ToolwayError) || error.kind.retryable
    if (isTemporary && held && !isOver(held)) return held
    throw error
  }

  async function alive(grant: Grant | undefined): Promise<Grant | undefined> {
    if (grant && !isEnding(grant)) return take(grant)
    return grant?.refreshToken === undefined ? undefined : renewed(grant)
  }

  async function keptFor({ issuer }: AuthDemand): Promise<Grant | undefined> {
    return issuer === undefined ? undefined : keptFrom(issuer)
  }

  async function keptFrom(issuer: string): Promise<Grant | undefined> {
    const written = await grants.grantOf(holder, issuer)
    return written && written.accessToken === unwritten?.instead ? unwritten.grant : written
  }

  async function replaced(challenge: Challenge, sent: string | undefined): Promise<boolean> {
    const before = await grants.demandOf(holder)
    const kept = await keptFor(before)
    if (kept && bearer(kept) !== sent && !isEnding(kept)) return take(kept) !== undefined
    const lacking = challenge.status === 403
    const demand = await demanded(before, challenge, lacking ? (kept?.scopes ?? []) : undefined)
    if (!itself && (lacking || !kept))
      throw want(lacking ? `needs more scopes than were granted${naming(challenge.scopes)}` : 'needs a sign-in')
    const isNew = (scope: string) => !before.more?.includes(scope) && !kept?.scopes.includes(scope)
    const asksMore = lacking && challenge.scopes?.some(isNew)
    // A renewal does not help if the rejected token is new. An older one may have expired by the server's clock.
    if (!asksMore && kept && isNewToken(kept) && clock.monotonic() - forcedAt < believedMs)
      throw want('rejected a new token')
    forcedAt = clock.monotonic()
    if (itself) return (await obtain(demand)) !== undefined
    const { issuer } = await discovered(demand)
    if (issuer.issuer === kept?.issuer) return (await renewed(kept)) !== undefined
    // The server uses another authorization server now, which must not receive the old grant.
    await grants.demanded(holder, { ...demand, issuer: issuer.issuer })
    const other = await grants.grantOf(holder, issuer.issuer)
    held = undefined
    if (await alive(other)) return true
    throw want('needs a new sign-in: its authorization server has changed')
  }

  /** Stores the requirements from a server's challenge, for the next sign-in. */
  async function demanded(before: AuthDemand, challenge: Challenge, had?: readonly string[]): Promise<AuthDemand> {
    const { resourceMetadata, scopes } = challenge
    const demand: AuthDemand = { ...before }
    if (resourceMetadata !== undefined) demand.resourceMetadata = resourceMetadata
    if (had) demand.more = [...new Set([...had, ...(scopes ?? [])])]
    else if (scopes) demand.scopes = [...scopes]
    if (JSON.stringify(demand) !== JSON.stringify(before)) await grants.demanded(holder, demand)
    return demand
  }

  /** Renews a grant under a cross-process lock, because using a refresh token twice may revoke the whole grant. */
  async function renewed(old: Grant): Promise<Grant> {
    await using _ = await locks.hold(grantLock(holder, old.issuer))
    const kept = await keptFrom(old.issuer)
    if (kept && kept.accessToken !== old.accessToken && !isEnding(kept)) return take(kept)
    const about = kept?.accessToken ?? ''
    failIfRejected(about)
    try {
      if (!kept) throw new OAuthError('the grant was removed', { code: 'invalid_grant' })
      const reach = await reachOf(server, rangeOf)
      const next = await refreshGrant(kept, await metadataOf(old.issuer), settings, options, reach)
      // Use the new grant even if it cannot be stored: only its refresh token is still valid.
      take(next)
      unwritten = { grant: next, instead: kept === unwritten?.grant ? unwritten.instead : kept.accessToken }
      await grants.granted(holder, next)
      unwritten = undefined
      log.debug({ server: holder.server }, 'token renewed')
      return next
    } catch (error) {
      const problem = problemOf(error)
      if (problem.unreachable && kept && !isOver(kept)) return take(kept)
      if (!problem.unreachable) held = undefined
      // Keep the grant after other errors: a wrong client secret, for example, can be corrected in the configuration.
      if (!problem.unreachable && problem.code === 'invalid_grant') await grants.ended(holder, old.issuer)
      if (isClientRejected(problem)) await grants.unregistered(holder.server, old.issuer, kept?.client.id)
      throw rejected(about, refusal(problem, 'needs a new sign-in'))
    }
  }

  async function obtain(demand: AuthDemand): Promise<Grant> {
    await using _ = await locks.hold(grantLock(holder, ''))
    const before = held
    const kept = await keptFor(await grants.demandOf(holder))
    if (kept && kept.accessToken !== before?.accessToken && !isEnding(kept)) return take(kept)
    const about = JSON.stringify(demand)
    failIfRejected(about)
    try {
      const found = await discovered(demand)
      const grant = await obtainGrant(found, demand, settings, options, server)
      await grants.demanded(holder, { ...demand, issuer: grant.issuer })
      await grants.granted(holder, grant)
      return take(grant)
    } catch (error) {
      throw rejected(about, refusal(error, 'needs a token, but none could be obtained'))
    }
  }

  /** Repeats a recent rejection instead of the request, which would fail again. */
  function failIfRejected(about: string): void {
    if (rejection?.about === about && clock.monotonic() - rejection.at < believedMs) throw rejection.error
  }

  function rejected(about: string, error: ToolwayError): ToolwayError {
    if (!error.kind.retryable) rejection = { about, error, at: clock.monotonic() }
    return error
  }

  async function discovered({ issuer, resourceMetadata }: AuthDemand): Promise<DiscoveredIssuer> {
    const challenge = resourceMetadata === undefined ? undefined : { status: 401, resourceMetadata }
    const only = onlyIssuer(settings, issuer)
    try {
      const configured = settings.issuer
      return await discoverIssuer({ server, challenge, only, configured, before: issuer, web, rangeOf })
    } catch (error) {
      throw refusal(error, 'does not allow a sign-in')
    }
  }

  function refusal(error: unknown, why: string): ToolwayError {
    const { unreachable, message } = problemOf(error)
    return unreachable ? tokenUnavailable(holder, message, error) : want(`${why}: ${message}`, error)
  }

  async function metadataOf(issuer: string): Promise<IssuerMetadata> {
    if (known?.metadata.issuer === issuer && clock.monotonic() - known.at < believedMs) return known.metadata
    const metadata = await issuerMetadata(issuer, web, await reachOf(server, rangeOf))
    known = { metadata, at: clock.monotonic() }
    return metadata
  }

  function take(grant: Grant): Grant {
    wanted = undefined
    held = grant
    return grant
  }

  function want(why: string, cause?: unknown): ToolwayError {
    const error = authRequired(holder, why, itself, cause)
    if (wanted?.error.message !== error.message) log.warn({ server: holder.server }, error.message)
    wanted = { error, at: clock.monotonic() }
    return error
  }

  function isEnding({ expiresAt, grantedAt }: Grant): boolean {
    if (expiresAt === undefined) return false
    return expiresAt - Math.min(earlyMs, (expiresAt - grantedAt) * earlyPart) <= clock.now()
  }

  function isNewToken({ expiresAt = Number.POSITIVE_INFINITY, grantedAt }: Grant): boolean {
    return clock.now() < grantedAt + Math.min(believedMs, (expiresAt - grantedAt) * earlyPart)
  }

  function isOver({ expiresAt }: Grant): boolean {
    return expiresAt !== undefined && expiresAt <= clock.now()
  }
}

const bearer = ({ accessToken }: Grant): string => `Bearer ${accessToken}`

/** Formats scopes for a message. They are truncated, because the server chooses the text and callers may be models. */
const naming = (scopes: readonly string[] | undefined): string => (scopes ? ` (${scopes.join(' ').slice(0, 200)})` : '')

/** Returns an OAuthError; rethrows any other error. */
function problemOf(error: unknown): OAuthError {
  if (error instanceof OAuthError) return error
  throw error
}

/**
 * The error if there is no valid token. Callers and operators read it, so it says who can do what. A sign-in is not
 * possible for a server with the client's own credentials (`itself`).
 */
function authRequired({ server, principal }: GrantHolder, why: string, itself: boolean, cause: unknown): ToolwayError {
  const whose = principal === '' ? '' : ` --principal ${principal}`
  const remedy = itself
    ? `The operator has to check mcpServers.${server}.auth`
    : `The operator signs in with: toolway auth ${server}${whose}`
  const sentence = `${server} ${why}. ${remedy}`
  return new ToolwayError('AUTH_REQUIRED', sentence, { server, auditReason: 'server_needs_auth', cause })
}

/** The error if a token is temporarily unavailable: a retry may help, and no sign-in is needed. */
function tokenUnavailable({ server }: GrantHolder, why: string, cause: unknown): ToolwayError {
  const sentence = `No token for ${server}: ${why}. Try again later.`
  return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, unsent: true, cause })
}
