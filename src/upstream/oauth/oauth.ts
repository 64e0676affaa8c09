import type { ServerConfig } from '../../config/schema.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Vault } from '../../core/stores.ts'
import { setBounded } from '../../lib/memoize.ts'
import type { RequestAuthorizer } from './authorization.ts'
import { Credential } from './credential.ts'
import { challengeOf } from './discovery.ts'
import {
  type GrantHolder,
  type GrantSummary,
  Grants,
  grantLock,
  type OAuthParts,
  type OAuthSettings,
  ProtectedServer,
} from './grants.ts'
import { beginSignIn, knownPort, type SignIn, sameState } from './sign-in.ts'
import { OAuthError, OAuthHttp } from './web.ts'

export type { GrantSummary } from './grants.ts'
export type { SignIn } from './sign-in.ts'

export interface OAuthOptions extends Pick<OAuthParts, 'locks' | 'clock' | 'log'> {
  readonly vault: Vault
}

/** A sign-in whose redirect leads to this gateway. */
interface PendingSignIn {
  readonly server: string
  readonly signIn: SignIn
  readonly until: number
}

/** Obtains, stores and renews tokens for servers that use OAuth. */
export class OAuth {
  /** Recently used access tokens, for redaction. */
  readonly seen = new SeenTokens()
  readonly #grants: Grants
  readonly #parts: OAuthParts
  readonly #credentials = new Map<string, Credential>()
  #pending: readonly PendingSignIn[] = []

  constructor({ vault, ...parts }: OAuthOptions) {
    this.#grants = new Grants(vault, (token) => this.seen.add(token))
    this.#parts = { ...parts, grants: this.#grants, web: new OAuthHttp(parts.clock) }
  }

  /** The credential for a server, shared by its connections; undefined for servers without OAuth. */
  authorize(server: string, config: ServerConfig, principal?: string): RequestAuthorizer | undefined {
    const settings = oauthSettings(config)
    if (!settings) return undefined
    const holder = grantHolder(server, config, settings, principal)
    const key = JSON.stringify([holder, settings])
    const known = this.#credentials.get(key)
    const credential = known ?? new Credential(new ProtectedServer(holder, settings, this.#parts))
    setBounded(this.#credentials, key, credential, maxCredentials)
    return credential
  }

  /** Begins a sign-in that ends at `redirect`. Throws INVALID_ARGUMENTS if the server does not use sign-in. */
  async begin(server: string, config: ServerConfig, redirect: URL, principal?: string): Promise<SignIn> {
    const { settings, holder, headers, kind } = signInSettings(server, config, principal)
    const target = new ProtectedServer(holder, settings, this.#parts)
    const askChallenge = () => challengeOf(target.url, headers, kind, this.#parts.clock)
    return beginSignIn(target, redirect, askChallenge).catch((error) => {
      throw signInRefusal(server, error)
    })
  }

  /** Begins a sign-in whose redirect leads to this gateway; returns the URL for the browser. */
  async beginHere(server: string, config: ServerConfig, redirect: URL, principal?: string): Promise<string> {
    const signIn = await this.begin(server, config, redirect, principal)
    const now = this.#parts.clock.monotonic()
    const living = this.#pending.filter(({ until }) => until > now)
    this.#pending = [...living, { server, signIn, until: now + signInTimeoutMs }].slice(-maxSignIns)
    return signIn.url
  }

  /**
   * Handles the redirect to this gateway at the end of a sign-in; returns the server's name. An error names the server
   * if the redirect belongs to a pending sign-in.
   */
  async finishHere(answer: URLSearchParams): Promise<string> {
    const now = this.#parts.clock.monotonic()
    const pending = this.#pending.find(({ signIn, until }) => until > now && sameState(answer, signIn.state))
    if (!pending) {
      const sentence = `unknown or expired sign-in (valid for ${signInTimeoutMs / 60_000} min, a fixed limit, and only in the replica where it began): start again`
      throw signInRefusal(undefined, new OAuthError(sentence))
    }
    this.#pending = this.#pending.filter((one) => one !== pending)
    const { server, signIn } = pending
    await signIn.finish(answer).catch((error) => {
      throw signInRefusal(server, error)
    })
    return server
  }

  async portOf(server: string, config: ServerConfig, principal?: string): Promise<number | undefined> {
    const { issuer } = await this.#grants.demandOf(signInSettings(server, config, principal).holder)
    return issuer === undefined ? undefined : knownPort(await this.#grants.clientOf(server, issuer))
  }

  /**
   * Removes all stored data for a server; returns the number of removed grants. This process stops using their tokens at
   * once, others within a few seconds.
   */
  async forget(server: string, principal?: string): Promise<number> {
    await using held = new AsyncDisposableStack()
    const isMeant = (holder: GrantHolder) =>
      holder.server === server && (principal === undefined || holder.principal === principal)
    for (const grant of (await this.#grants.list()).filter(isMeant)) {
      // Without the lock, a renewal that is under way would store the grant again.
      held.use(await this.#parts.locks.hold(grantLock(grant, grant.issuer)))
    }
    const count = await this.#grants.forget(server, principal)
    for (const credential of this.#credentials.values()) if (isMeant(credential.holder)) credential.forget()
    return count
  }

  list(): Promise<readonly GrantSummary[]> {
    return this.#grants.list()
  }
}

/** The maximum number of credentials in memory. Beyond it, the least recently used one is dropped. */
const maxCredentials = 4_096

const oauthSettings = (config: ServerConfig): OAuthSettings | undefined =>
  config.transport !== 'stdio' && config.auth?.type === 'oauth' ? config.auth : undefined

/** The holder of a server's grant. A grant that all principals share has no principal. */
const grantHolder = (server: string, config: ServerConfig, settings: OAuthSettings, principal = ''): GrantHolder => ({
  server,
  url: config.transport === 'stdio' ? '' : new URL(config.url).href,
  principal: settings.perPrincipal ? principal : '',
})

function signInSettings(server: string, config: ServerConfig, principal?: string) {
  const settings = oauthSettings(config)
  if (!settings || config.transport === 'stdio') {
    const sentence = `${server} does not use OAuth: set mcpServers.${server}.auth.type to oauth.`
    throw new ToolwayError('INVALID_ARGUMENTS', sentence)
  }
  if (settings.grant === 'client_credentials') {
    const sentence = `${server} needs no sign-in: Toolway obtains tokens with the client credentials in mcpServers.${server}.auth.`
    throw new ToolwayError('INVALID_ARGUMENTS', sentence)
  }
  const { headers, transport: kind } = config
  return { settings, holder: grantHolder(server, config, settings, principal), headers, kind }
}

function signInRefusal(server: string | undefined, error: unknown): unknown {
  if (!(error instanceof OAuthError)) return error
  const code = error.unreachable ? 'SERVER_UNAVAILABLE' : 'AUTH_REQUIRED'
  const sentence = `Could not sign in to ${server ?? 'the server'}: ${error.message}.`
  return new ToolwayError(code, sentence, { server, cause: error })
}

const signInTimeoutMs = 10 * 60_000
/** The maximum number of pending sign-ins. Beyond it, the oldest one is dropped. */
const maxSignIns = 32

/** How many tokens are redacted. Each costs memory and search time, and older ones have expired or soon will. */
const maxTokens = 256

/** Collects access tokens to redact wherever they appear. */
export class SeenTokens {
  /** Whenever the tokens change, this is a new array. */
  current: readonly string[] = []

  add(token: string): void {
    const part = secretPart(token)
    if (!this.current.includes(part)) this.current = [...this.current, part].slice(-maxTokens)
  }
}

/** The part of a token to redact. For a JWT this is the signature: it is short, and the rest is useless without it. */
function secretPart(token: string): string {
  const [, signature] = /^[\w-]+\.[\w-]+\.([\w-]{32,})$/.exec(token) ?? []
  return signature ?? token
}
