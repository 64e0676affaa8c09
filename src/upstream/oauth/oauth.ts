import type { ServerConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Locks, Vault } from '../../core/stores.ts'
import { setBounded } from '../../lib/memoize.ts'
import type { RequestAuthorizer } from './authorization.ts'
import { Credential } from './credential.ts'
import { challengeOf } from './discovery.ts'
import { createGrants, type Grant, type GrantHolder, grantLock } from './grants.ts'
import { OAuthError } from './oauth-error.ts'
import { type OAuthSettings, ProtectedServer } from './protected-server.ts'
import { beginSignIn, knownPort, type SignIn, sameState } from './sign-in.ts'
import { createOAuthHttp } from './web.ts'

export type { SignIn } from './sign-in.ts'

/** Obtains, stores and renews tokens for servers that use OAuth. */
export interface OAuth {
  /** The credential for a server, shared by its connections; undefined for servers without OAuth. */
  authorize(server: string, config: ServerConfig, principal?: string): RequestAuthorizer | undefined
  /** Begins a sign-in that ends at `redirect`. Throws INVALID_ARGUMENTS if the server does not use sign-in. */
  begin(server: string, config: ServerConfig, redirect: URL, principal?: string): Promise<SignIn>
  /** Begins a sign-in whose redirect leads to this gateway; returns the URL for the browser. */
  beginHere(server: string, config: ServerConfig, redirect: URL, principal?: string): Promise<string>
  /**
   * Handles the redirect to this gateway at the end of a sign-in; returns the server's name. An error names the server
   * if the redirect belongs to a pending sign-in.
   */
  finishHere(answer: URLSearchParams): Promise<string>
  portOf(server: string, config: ServerConfig, principal?: string): Promise<number | undefined>
  /**
   * Removes all stored data for a server; returns the number of removed grants. This process stops using their tokens at
   * once, others within a few seconds.
   */
  forget(server: string, principal?: string): Promise<number>
  list(): Promise<readonly GrantSummary[]>
  /** Recently used access tokens, for redaction. Whenever the tokens change, this is a new array. */
  tokens(): readonly string[]
}

export interface GrantSummary extends GrantHolder, Pick<Grant, 'issuer' | 'scopes' | 'expiresAt' | 'grantedAt'> {
  readonly renewable: boolean
}

export interface OAuthOptions {
  readonly vault: Vault
  readonly locks: Locks
  readonly clock: Clock
  readonly log: Log
}

export function createOAuth({ vault, locks, clock, log }: OAuthOptions): OAuth {
  const seen = createSeenTokens()
  const grants = createGrants(vault, seen.add)
  const parts = { grants, locks, clock, log, web: createOAuthHttp({ clock }) }
  const flows = createPendingSignIns(clock)
  const credentials = new Map<string, Credential>()

  const begin: OAuth['begin'] = async (server, config, redirect, principal) => {
    const { settings, holder, headers, kind } = wanted(server, config, principal)
    const target = new ProtectedServer(holder, settings, parts)
    const askChallenge = () => challengeOf(target.url, headers, kind, clock)
    return beginSignIn(target, redirect, askChallenge).catch((error) => {
      throw refusal(server, error)
    })
  }

  return {
    authorize(server, config, principal) {
      const settings = settingsOf(config)
      if (!settings) return undefined
      const holder = holderOf(server, config, settings, principal)
      const key = JSON.stringify([holder, settings])
      const credential = credentials.get(key) ?? new Credential(new ProtectedServer(holder, settings, parts))
      setBounded(credentials, key, credential, maxCredentials)
      return credential
    },
    begin,
    async beginHere(server, config, redirect, principal) {
      const signIn = await begin(server, config, redirect, principal)
      flows.add(server, signIn)
      return signIn.url
    },
    finishHere: flows.finish,
    async portOf(server, config, principal) {
      const { issuer } = await grants.demandOf(wanted(server, config, principal).holder)
      return issuer === undefined ? undefined : knownPort(await grants.clientOf(server, issuer))
    },
    async forget(server, principal) {
      await using held = new AsyncDisposableStack()
      const isMeant = (holder: GrantHolder) =>
        holder.server === server && (principal === undefined || holder.principal === principal)
      for (const { grant, ...holder } of await grants.list()) {
        // Without the lock, a renewal that is under way would store the grant again.
        if (isMeant(holder)) held.use(await locks.hold(grantLock(holder, grant.issuer)))
      }
      const count = await grants.forget(server, principal)
      for (const credential of credentials.values()) if (isMeant(credential.holder)) credential.forget()
      return count
    },
    tokens: seen.list,
    async list() {
      const kept = await grants.list()
      return kept.map(({ grant, ...holder }) => {
        const { issuer, scopes, expiresAt, grantedAt, refreshToken } = grant
        return { ...holder, issuer, scopes, expiresAt, grantedAt, renewable: refreshToken !== undefined }
      })
    },
  }
}

/** The maximum number of credentials in memory. Beyond it, the least recently used one is dropped. */
const maxCredentials = 4_096

const settingsOf = (config: ServerConfig): OAuthSettings | undefined =>
  config.transport !== 'stdio' && config.auth?.type === 'oauth' ? config.auth : undefined

/** The holder of a server's grant. A grant that all principals share has no principal. */
const holderOf = (server: string, config: ServerConfig, settings: OAuthSettings, principal = ''): GrantHolder => ({
  server,
  url: config.transport === 'stdio' ? '' : new URL(config.url).href,
  principal: settings.perPrincipal ? principal : '',
})

function wanted(server: string, config: ServerConfig, principal?: string) {
  const settings = settingsOf(config)
  if (!settings || config.transport === 'stdio') {
    const sentence = `${server} does not use OAuth: set mcpServers.${server}.auth.type to oauth.`
    throw new ToolwayError('INVALID_ARGUMENTS', sentence)
  }
  if (settings.grant === 'client_credentials') {
    const sentence = `${server} needs no sign-in: Toolway obtains tokens with the client credentials in mcpServers.${server}.auth.`
    throw new ToolwayError('INVALID_ARGUMENTS', sentence)
  }
  const { headers, transport: kind } = config
  return { settings, holder: holderOf(server, config, settings, principal), headers, kind }
}

function refusal(server: string | undefined, error: unknown): unknown {
  if (!(error instanceof OAuthError)) return error
  const code = error.unreachable ? 'SERVER_UNAVAILABLE' : 'AUTH_REQUIRED'
  const sentence = `Could not sign in to ${server ?? 'the server'}: ${error.message}.`
  return new ToolwayError(code, sentence, { server, cause: error })
}

const signInTimeoutMs = 10 * 60_000
/** The maximum number of pending sign-ins. Beyond it, the oldest one is dropped. */
const maxSignIns = 32

/** Sign-ins that will be redirected to this gateway; abandoned ones are dropped. */
function createPendingSignIns(clock: Clock) {
  let flows: readonly { readonly server: string; readonly signIn: SignIn; readonly until: number }[] = []
  return {
    add(server: string, signIn: SignIn): void {
      const living = flows.filter(({ until }) => until > clock.monotonic())
      flows = [...living, { server, signIn, until: clock.monotonic() + signInTimeoutMs }].slice(-maxSignIns)
    },
    /** Finishes the matching sign-in; returns the server's name. */
    async finish(answer: URLSearchParams): Promise<string> {
      const flow = flows.find(({ signIn, until }) => until > clock.monotonic() && sameState(answer, signIn.state))
      const minutes = signInTimeoutMs / 60_000
      if (!flow) {
        const sentence = `unknown or expired sign-in (valid for ${minutes} min, a fixed limit, and only in the replica where it began): start again`
        throw refusal(undefined, new OAuthError(sentence))
      }
      flows = flows.filter((one) => one !== flow)
      const { server, signIn } = flow
      await signIn.finish(answer).catch((error) => {
        throw refusal(server, error)
      })
      return server
    },
  }
}

/** How many tokens are redacted. Each costs memory and search time, and older ones have expired or soon will. */
const maxTokens = 256

/** Collects access tokens to redact wherever they appear. Each change creates a new array. */
export function createSeenTokens() {
  let seen: readonly string[] = []
  return {
    add(token: string): void {
      const part = secretPart(token)
      if (!seen.includes(part)) seen = [...seen, part].slice(-maxTokens)
    },
    list: (): readonly string[] => seen,
  }
}

/** The part of a token to redact. For a JWT this is the signature: it is short, and the rest is useless without it. */
function secretPart(token: string): string {
  const [, signature] = /^[\w-]+\.[\w-]+\.([\w-]{32,})$/.exec(token) ?? []
  return signature ?? token
}
