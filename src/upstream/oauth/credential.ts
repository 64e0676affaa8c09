import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Challenge, RequestAuthorizer } from './authorization.ts'
import { type DiscoveredIssuer, discoverIssuer, type IssuerMetadata, issuerMetadata } from './discovery.ts'
import type { AuthDemand, Grant, GrantHolder } from './grants.ts'
import { OAuthError } from './oauth-error.ts'
import { type OAuthParts, type OAuthSettings, obtainGrant, onlyIssuer, refreshGrant } from './tokens.ts'
import { reachOf } from './web.ts'

/** A token is renewed this long before it ends, so that none ends on its way; a short-lived one later. */
const earlyMs = 30_000
const earlyPart = 0.25
/** How long a server that wants a sign-in, or refuses what it was just given, is believed without asking again. */
const believedMs = 60_000

/**
 * The credential for one server and holder, shared by all lines that use it. However many need a new token at once,
 * one asks for it: here by one promise for all, elsewhere by a lock and by looking whether somebody was quicker.
 */
export function createCredential(
  options: OAuthParts & { readonly holder: GrantHolder; readonly settings: OAuthSettings; readonly log: Log },
): RequestAuthorizer {
  const { holder, settings, grants, locks, web, placeOf, clock, log } = options
  const server = new URL(holder.url)
  const itself = settings.grant === 'client_credentials'
  let held: Grant | undefined
  let finding: Promise<Grant | undefined> | undefined
  let replacing: Promise<boolean> | undefined
  /** Why there is none, since the server said so. */
  let wanted: { readonly error: ToolwayError; readonly at: number } | undefined
  /** When a token was renewed although its time was not over. */
  let forcedAt = Number.NEGATIVE_INFINITY
  /** What could not be written down when it was given, and the token that still stands in its place. */
  let unwritten: { readonly grant: Grant; readonly instead: string } | undefined
  let known: { readonly metadata: IssuerMetadata; readonly at: number } | undefined

  return {
    header() {
      if (held && !isEnding(held)) return bearer(held)
      finding ??= found()
        .catch(goOn)
        .finally(() => {
          finding = undefined
        })
      return finding.then((grant) => {
        if (grant) return bearer(grant)
        if (wanted && clock.monotonic() - wanted.at < believedMs) throw wanted.error
        return undefined
      })
    },
    async refused(challenge, sent) {
      if (challenge.status === 403 && challenge.error !== 'insufficient_scope') return false
      // Whoever was refused at the same time has seen to it.
      if (held && bearer(held) !== sent) return true
      replacing ??= replaced(challenge, sent).finally(() => {
        replacing = undefined
      })
      return replacing
    },
  }

  /** The grant as it is kept, renewed where it has to be. */
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

  /** Where nobody can be asked for now, what is good for a few seconds more is better than nothing. */
  function goOn(error: unknown): Grant {
    if (error instanceof ToolwayError && error.kind.retryable && held && !isOver(held)) return held
    throw error
  }

  /** A grant that is good, or can be made so. */
  async function alive(grant: Grant | undefined): Promise<Grant | undefined> {
    if (grant && !isEnding(grant)) return take(grant)
    return grant?.refreshToken === undefined ? undefined : renewed(grant)
  }

  async function keptFor({ issuer }: AuthDemand): Promise<Grant | undefined> {
    return issuer === undefined ? undefined : grants.grantOf(holder, issuer)
  }

  async function replaced(challenge: Challenge, sent: string | undefined): Promise<boolean> {
    const before = await grants.demandOf(holder)
    const kept = await keptFor(before)
    if (kept && bearer(kept) !== sent && !isEnding(kept)) return take(kept) !== undefined
    const lacking = challenge.status === 403
    const demand = await demanded(before, challenge, lacking ? (kept?.scopes ?? []) : undefined)
    if (!itself && (lacking || !kept)) {
      throw want(lacking ? `needs more rights than it was given${naming(challenge.scopes)}` : 'needs a sign-in')
    }
    const isNew = (scope: string) => !before.more?.includes(scope) && !kept?.scopes.includes(scope)
    const asksMore = lacking && challenge.scopes?.some(isNew)
    if (!asksMore && clock.monotonic() - forcedAt < believedMs)
      throw want('refuses the token that was just obtained for it')
    forcedAt = clock.monotonic()
    if (itself) return (await obtain(demand)) !== undefined
    const { issuer } = await discovered(demand)
    if (issuer.issuer === kept?.issuer) return (await renewed(kept)) !== undefined
    // It trusts somebody else now, who gets nothing of what there was.
    await grants.demanded(holder, { ...demand, issuer: issuer.issuer })
    const other = await grants.grantOf(holder, issuer.issuer)
    held = undefined
    if (await alive(other)) return true
    throw want('needs a new sign-in: it has another authorization server now')
  }

  /** Writes down what the server wants, for whoever signs in. */
  async function demanded(
    before: AuthDemand,
    challenge: Challenge,
    had: readonly string[] | undefined,
  ): Promise<AuthDemand> {
    const { resourceMetadata, scopes } = challenge
    const demand: AuthDemand = {
      ...before,
      ...(resourceMetadata !== undefined && { resourceMetadata }),
      ...(scopes && !had && { scopes: [...scopes] }),
      ...(had && { more: [...new Set([...had, ...(scopes ?? [])])] }),
    }
    if (JSON.stringify(demand) !== JSON.stringify(before)) await grants.demanded(holder, demand)
    return demand
  }

  /** One at a time, wherever it runs: a refresh token that is used twice may void the whole grant. */
  async function renewed(old: Grant): Promise<Grant> {
    await using _ = await locks.hold(`grant ${JSON.stringify([old.issuer, holder])}`)
    const written = await grants.grantOf(holder, old.issuer)
    const kept = written && written.accessToken === unwritten?.instead ? unwritten.grant : written
    if (kept && kept.accessToken !== old.accessToken && !isEnding(kept)) return take(kept)
    try {
      if (!kept) throw new OAuthError('the grant was taken back', { code: 'invalid_grant' })
      const reach = await reachOf(server, placeOf)
      const next = await refreshGrant(kept, await metadataOf(old.issuer), settings, options, reach)
      // Calls go on with it, whether or not it can be written down; and it is the only one that can be renewed again.
      take(next)
      unwritten = { grant: next, instead: written?.accessToken ?? '' }
      await grants.granted(holder, next)
      unwritten = undefined
      log.debug({ server: holder.server }, 'a token was renewed')
      return next
    } catch (error) {
      const problem = problemOf(error)
      if (problem.unreachable && kept && !isOver(kept)) return take(kept)
      if (problem.unreachable) throw tokenUnavailable(holder, problem.message, error)
      held = undefined
      // A client whose secret is wrong can be mended in the configuration; the grant may still be good then.
      if (problem.code === 'invalid_grant') await grants.ended(holder, old.issuer)
      throw want(`needs a new sign-in: ${problem.message}`, error)
    }
  }

  async function obtain(demand: AuthDemand): Promise<Grant> {
    await using _ = await locks.hold(`grant ${JSON.stringify(['', holder])}`)
    const before = held
    const kept = await keptFor(await grants.demandOf(holder))
    if (kept && kept.accessToken !== before?.accessToken && !isEnding(kept)) return take(kept)
    try {
      const found = await discovered(demand)
      const grant = await obtainGrant(found, demand, settings, options, server)
      await grants.demanded(holder, { ...demand, issuer: grant.issuer })
      await grants.granted(holder, grant)
      return take(grant)
    } catch (error) {
      const problem = problemOf(error)
      if (problem.unreachable) throw tokenUnavailable(holder, problem.message, error)
      throw want(`wants a token, and there is none to be had: ${problem.message}`, error)
    }
  }

  async function discovered({ issuer, resourceMetadata }: AuthDemand): Promise<DiscoveredIssuer> {
    const challenge = resourceMetadata === undefined ? undefined : { status: 401, resourceMetadata }
    const only = onlyIssuer(settings, issuer)
    try {
      return await discoverIssuer({ server, challenge, only, before: issuer, web, placeOf })
    } catch (error) {
      const problem = problemOf(error)
      if (problem.unreachable) throw tokenUnavailable(holder, problem.message, error)
      throw want(`cannot be signed in to: ${problem.message}`, error)
    }
  }

  async function metadataOf(issuer: string): Promise<IssuerMetadata> {
    if (known?.metadata.issuer === issuer && clock.monotonic() - known.at < believedMs) return known.metadata
    const metadata = await issuerMetadata(issuer, { web, reach: await reachOf(server, placeOf) })
    known = { metadata, at: clock.monotonic() }
    return metadata
  }

  function take(grant: Grant): Grant {
    wanted = undefined
    held = grant
    return grant
  }

  function want(why: string, cause?: unknown): ToolwayError {
    const error = authRequired(holder, why, cause)
    if (wanted?.error.message !== error.message) log.warn({ server: holder.server }, error.message)
    wanted = { error, at: clock.monotonic() }
    return error
  }

  function isEnding({ expiresAt, grantedAt }: Grant): boolean {
    if (expiresAt === undefined) return false
    return expiresAt - Math.min(earlyMs, (expiresAt - grantedAt) * earlyPart) <= clock.now()
  }

  function isOver({ expiresAt }: Grant): boolean {
    return expiresAt !== undefined && expiresAt <= clock.now()
  }
}

const bearer = ({ accessToken }: Grant): string => `Bearer ${accessToken}`

/** They are the server's words, and callers may be models: no more than it takes to know what is lacking. */
const naming = (scopes: readonly string[] | undefined): string => (scopes ? ` (${scopes.join(' ').slice(0, 200)})` : '')

/** What is no problem of OAuth is one of our own. */
function problemOf(error: unknown): OAuthError {
  if (error instanceof OAuthError) return error
  throw error
}

/** A person has to sign in. The sentence goes to whoever called, who may be a model: it says whom to ask for what. */
function authRequired({ server, principal }: GrantHolder, why: string, cause?: unknown): ToolwayError {
  const whose = principal === '' ? '' : ` --principal ${principal}`
  const sentence = `${server} ${why}. Ask the operator to run: toolway auth ${server}${whose}`
  return new ToolwayError('AUTH_REQUIRED', sentence, { server, auditReason: 'server_needs_auth', cause })
}

/** Trying again later may help: nobody needs to sign in for that. */
function tokenUnavailable({ server }: GrantHolder, why: string, cause: unknown): ToolwayError {
  const sentence = `There is no token for ${server} now: ${why}. Try again later.`
  return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, unsent: true, cause })
}
