import type { Config, ServerConfig } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { deadline } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import type { RedisSafe } from '../stores/redis/vault.ts'
import { fileLocks, fileVault } from '../stores/vault.ts'
import { openLoopback } from '../upstream/oauth/loopback-redirect.ts'
import { OAuth, type OAuthOptions } from '../upstream/oauth/oauth.ts'
import { sameState } from '../upstream/oauth/sign-in.ts'

export type { GrantSummary as KeptGrant, OAuth } from '../upstream/oauth/oauth.ts'

type OAuthContext = Pick<OAuthOptions, 'clock' | 'log'>

/** OAuth for servers. Tokens are stored in Redis or in the state folder; the gateway and the CLI share them. */
export function createServerOAuth(safe: RedisSafe | undefined, { stores }: Config, context: OAuthContext): OAuth {
  const { vault, locks } = safe ?? { vault: fileVault(stores.path), locks: fileLocks(stores.path) }
  return new OAuth({ vault, locks, ...context })
}

/** OAuth for CLI commands. Opens a Redis connection if the tokens are stored there, because commands have none. */
export async function openOAuth(config: Config, context: OAuthContext): Promise<OAuth & AsyncDisposable> {
  const { redis, key } = config.stores
  await using open = new AsyncDisposableStack()
  let safe: RedisSafe | undefined
  if (redis && !redis.disabled && key !== undefined) {
    const { openRedisSafe } = await import('../stores/redis/vault.ts')
    safe = open.use(await openRedisSafe({ url: redis.url, key, ...context }))
  }
  const running = open.move()
  return Object.assign(createServerOAuth(safe, config, context), {
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  })
}

export interface SignInOptions {
  readonly oauth: OAuth
  readonly server: string
  readonly config: ServerConfig
  /** The user who gets the grant, for servers with one grant per user. */
  readonly principal?: string | undefined
  browse(url: string, issuer: string): void | Promise<void>
  readonly withinMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Signs in to a server from this machine. The browser is redirected to a temporary port on the loopback address. */
export async function signIn(
  options: SignInOptions,
): Promise<{ readonly issuer: string; readonly scopes: readonly string[] }> {
  const { oauth, server, config, principal, withinMs, clock, signal } = options
  await using loopback = await openLoopback(await oauth.portOf(server, config, principal))
  const flow = await oauth.begin(server, config, loopback.redirect, principal)
  using limit = deadline(clock, withinMs, () => signInTimedOut(server, withinMs), signal)
  const finished = loopback.wait(
    (callback) => (sameState(callback, flow.state) ? flow.finish(callback) : undefined),
    limit.signal,
  )
  finished.catch(() => {})
  await options.browse(flow.url, flow.issuer)
  const { issuer, scopes } = await finished.catch((error) => {
    throw error instanceof ToolwayError || signal.aborted ? error : signInFailed(server, error)
  })
  return { issuer, scopes }
}

function signInTimedOut(server: string, withinMs: number): ToolwayError {
  const message = `The sign-in to ${server} was not completed within ${withinMs / 1000} s (--timeout). Run the command again; if the page says that the client is unknown, first run: toolway auth ${server} --logout`
  return new ToolwayError('TIMEOUT', message, { server })
}

const signInFailed = (server: string, cause: Error): ToolwayError =>
  new ToolwayError('AUTH_REQUIRED', `Signing in to ${server} failed: ${cause.message}.`, { server, cause })
