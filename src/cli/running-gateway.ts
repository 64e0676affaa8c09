import { isIPv6 } from 'node:net'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { pause } from '../core/deadline.ts'
import { keptToken } from '../stores/secret-file.ts'
import { CommandError, exit, type Output, type Shell, UsageError } from './kit.ts'
import { type CommonOptions, load } from './load.ts'

export class NoGateway extends CommandError {
  constructor(message: string) {
    super(message, { code: 'NO_GATEWAY', exitCode: exit.unavailable })
  }
}

/** The error if the gateway rejected the request. The code and the message come from the gateway. */
export class RefusedByGateway extends CommandError {
  constructor(code: string, message: string) {
    super(message, { code, exitCode: exit.refused })
  }
}

const timeoutMs = 10_000

export type RunningGateway = Awaited<ReturnType<typeof runningGateway>>

export interface RunningGatewayOptions extends CommonOptions {
  readonly host?: string
  readonly port?: number
}

/** The running gateway that a command's options mean: that of the configuration, unless they name another address. */
export async function findRunningGateway(shell: Shell, options: RunningGatewayOptions): Promise<RunningGateway> {
  const { config } = await load(shell, options)
  const { host = config.server.host, port = config.server.port } = options
  return runningGateway({ ...config, server: { ...config.server, host, port } })
}

/** The gateway for this configuration, which is running in another process. */
export async function runningGateway({ server, auth, stores }: Config) {
  if (server.port === 0) {
    throw new UsageError(
      "The gateway's port is unknown: server.port is 0 (any free port).",
      'Use --port to pass the port that the gateway printed when it started.',
    )
  }
  const url = `http://${hostOf(server.host)}:${server.port}`
  const token = auth.token === 'generated' ? await keptToken(stores.common) : auth.token
  const headers = { accept: 'application/json', ...(token !== 'none' && { authorization: `Bearer ${token}` }) }
  const send = async <Body>(path: string, more: RequestInit, signal: AbortSignal): Promise<Body> => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    // Do not follow redirects: a gateway never sends any, and the target must not get our token.
    const init = { headers, signal: limited, redirect: 'manual', ...more } as const
    const response = await fetch(`${url}/admin/api/${path}`, init).catch((thrown: unknown) => {
      signal.throwIfAborted()
      throw unreachable(url, thrown)
    })
    const body: unknown = await response.json().catch(() => undefined)
    if (response.ok && body !== undefined) return body as Body
    const { error } = (body ?? {}) as { error?: { code?: unknown; message?: unknown } }
    if (typeof error?.code === 'string' && typeof error.message === 'string') {
      throw new RefusedByGateway(error.code, error.message)
    }
    throw new NoGateway(`${url} responded, but it is not a Toolway gateway.`)
  }
  return {
    url,
    /** Calls the gateway's admin API; throws NoGateway if the gateway is not running. */
    get: <Body>(path: string, signal: AbortSignal) => send<Body>(path, {}, signal),
    post: <Body>(path: string, body: object, signal: AbortSignal) =>
      send<Body>(
        path,
        { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) },
        signal,
      ),
  }
}

/** Fetches again at an interval, until interrupted. If the gateway disappears, keeps trying: it may be restarting. */
export async function* poll<T>(
  fetch: () => Promise<T>,
  everyMs: number,
  { shell: { interrupted }, output, clock }: { shell: Shell; output: Output; clock: Clock },
): AsyncGenerator<T> {
  let latest = await fetch()
  while (!interrupted.aborted) {
    yield latest
    await pause(clock, everyMs, interrupted).catch(() => {})
    if (interrupted.aborted) return
    latest = await fetch().catch((thrown: unknown) => {
      if (interrupted.aborted) return latest
      if (!(thrown instanceof NoGateway)) throw thrown
      output.note(`${thrown.message} Retrying.`)
      return latest
    })
  }
}

/** The host to connect to. A wildcard address cannot be connected to, so use loopback, which it includes. */
function hostOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return isIPv6(host) ? `[${host}]` : host
}

function unreachable(url: string, thrown: unknown): NoGateway {
  const error = thrown as Error & { cause?: NodeJS.ErrnoException }
  if (error.name === 'TimeoutError')
    return new NoGateway(`${url} did not answer within ${timeoutMs / 1000} s (a fixed limit).`)
  const reason =
    error.cause?.code === 'ECONNREFUSED' ? 'nothing is listening there' : (error.cause?.message ?? error.message)
  return new NoGateway(`No gateway is running at ${url}: ${reason}.`)
}
