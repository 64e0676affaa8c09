import { isIPv6 } from 'node:net'
import type { Config } from '../config/schema.ts'
import { keptToken } from '../stores/secret-file.ts'
import { UsageError } from './kit.ts'

/** A gateway that runs in another process. */
export interface RunningGateway {
  readonly url: string
  /** Calls its admin API; throws NoGateway if it is not running. */
  get<Answer>(path: string, signal: AbortSignal): Promise<Answer>
}

/** No gateway is running at the configured address; the message says what to do. */
export class NoGateway extends Error {
  override readonly name = 'NoGateway'
}

/** The gateway rejected the request; the message is the gateway's. */
export class RefusedByGateway extends Error {
  override readonly name = 'RefusedByGateway'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Nobody waits longer than this for a program on the same machine. */
const patienceMs = 10_000

/** The gateway that this configuration is for, if it runs. */
export async function runningGateway({ server, auth, stores }: Config): Promise<RunningGateway> {
  if (server.port === 0) {
    throw new UsageError(
      'The configuration lets the gateway take any free port, so nobody knows where it is.',
      'Name it with --port, as the gateway printed it when it started.',
    )
  }
  const url = `http://${hostOf(server.host)}:${server.port}`
  const token = auth.token === 'generated' ? await keptToken(stores.common) : auth.token
  const headers = { accept: 'application/json', ...(token !== 'none' && { authorization: `Bearer ${token}` }) }
  return {
    url,
    async get<Answer>(path: string, signal: AbortSignal) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)])
      // Whoever sends us elsewhere is not the gateway, and must not get its token.
      const asked = { headers, signal: limited, redirect: 'manual' } as const
      const response = await fetch(`${url}/admin/api/${path}`, asked).catch((thrown: unknown) => {
        signal.throwIfAborted()
        throw unreachable(url, thrown)
      })
      const body: unknown = await response.json().catch(() => undefined)
      if (response.ok && body !== undefined) return body as Answer
      throw refusal(body) ?? new NoGateway(`${url} answers, but not as the admin interface of a Toolway gateway.`)
    },
  }
}

/** An address that means all of them cannot be called; this machine's own is among them. */
function hostOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return isIPv6(host) ? `[${host}]` : host
}

function unreachable(url: string, thrown: unknown): NoGateway {
  const error = thrown as Error & { cause?: NodeJS.ErrnoException }
  if (error.name === 'TimeoutError')
    return new NoGateway(`${url} did not answer within ${patienceMs / 1000} s (a fixed limit).`)
  const reason =
    error.cause?.code === 'ECONNREFUSED' ? 'nothing listens there' : (error.cause?.message ?? error.message)
  return new NoGateway(`No gateway answers at ${url}: ${reason}.`)
}

/** What the gateway says about why it does not answer. */
function refusal(body: unknown): RefusedByGateway | undefined {
  const { error } = (body ?? {}) as { error?: { code?: unknown; message?: unknown } }
  if (typeof error?.code !== 'string' || typeof error.message !== 'string') return undefined
  return new RefusedByGateway(error.code, error.message)
}
