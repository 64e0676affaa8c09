import { type ErrorCode, type ErrorDetails, ToolwayError } from '../../core/errors.ts'
import { ProxyError } from '../../egress/proxy.ts'
import { retryAfterMs } from '../../lib/duration.ts'
import { failureReason } from '../../lib/message-text.ts'
import { readChallenge } from '../oauth/authorization.ts'
import { ConnectTimeout, NoResponse, type ResponseHead } from './http-channel.ts'

export interface TransportState {
  readonly name: string
  readonly origin: string
  readonly established: boolean
}

class HttpStatus extends Error {
  override readonly name = 'HttpStatus'
  readonly status: number
  /** Whether the server requires a credential and says where to get one with OAuth. */
  readonly offersOAuth: boolean

  constructor(status: number, offersOAuth = false) {
    super(`HTTP ${status}`)
    this.status = status
    this.offersOAuth = offersOAuth
  }
}

type ExceededKind =
  | 'large-message'
  | 'deep-nesting'
  | 'too-many-blocks'
  | 'too-many-values'
  | 'flood'
  | 'unusable-response'
  | 'stray-output'

/** The cause of an error about a message that exceeds a limit. */
export class LimitExceeded extends Error {
  override readonly name = 'LimitExceeded'
  readonly kind: ExceededKind
  readonly limit: number

  constructor(kind: ExceededKind, limit: number, message = `${kind}: the limit is ${limit}`) {
    super(message)
    this.kind = kind
    this.limit = limit
  }

  /** Finds it among an error's causes. */
  static in(thrown: unknown): LimitExceeded | undefined {
    for (let error = thrown, depth = 0; error instanceof Error && depth < 8; depth++) {
      if (error instanceof LimitExceeded) return error
      error = error.cause
    }
    return undefined
  }
}

/** The cause of an error about a process that writes other output instead of messages. */
export class StrayOutput extends Error {
  override readonly name = 'StrayOutput'
}

/** The error code for requests that were pending when a connection broke: after the handshake, they may have run. */
export const brokenConnectionCode = (established: boolean): ErrorCode =>
  established ? 'OUTCOME_UNKNOWN' : 'SERVER_UNAVAILABLE'

/** Requests that change nothing on the server; in addition to them, all lists. */
const harmlessMethods: ReadonlySet<string> = new Set([
  ...['initialize', 'server/discover', 'ping', 'logging/setLevel', 'completion/complete'],
  ...['resources/read', 'resources/subscribe', 'resources/unsubscribe', 'subscriptions/listen', 'prompts/get'],
  ...['tasks/get', 'tasks/result'],
])

/** The error for a request that was sent and got no usable response: its outcome is unknown if it may have an effect. */
export function unansweredError(method: string, sentence: string, details: ErrorDetails): ToolwayError {
  const requestOnly = details.requestOnly ?? (LimitExceeded.in(details.cause) ? true : undefined)
  const sent = { ...details, unsent: undefined, requestOnly }
  if (harmlessMethods.has(method) || method.endsWith('/list'))
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, sent)
  const advice = 'The call may have taken effect: check before you repeat it.'
  return new ToolwayError('OUTCOME_UNKNOWN', `${sentence} ${advice}`, sent)
}

/** The error for a request that certainly did not reach the server. */
export const unsentError = (server: string, sentence: string, cause?: unknown): ToolwayError =>
  new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, unsent: true, cause })

export const closedByUs = (name: string): ToolwayError =>
  unsentError(name, `Toolway has closed its connection to ${name}; try again.`)

/** The error for a request that was sent and whose outcome is unknown. */
export function connectionLost({ name, established }: TransportState, what: string, cause?: unknown): ToolwayError {
  const advice = established ? '' : ` Check mcpServers.${name}.url.`
  return new ToolwayError(brokenConnectionCode(established), `${name} ${what}.${advice}`, { server: name, cause })
}

/** The error for a request that got no response. Errors that are not about the connection are returned unchanged. */
export function noResponseError(state: TransportState, thrown: unknown): unknown {
  if (!(thrown instanceof NoResponse)) return thrown
  const { name, origin } = state
  const { cause, written } = thrown
  if (cause instanceof ProxyError) return unsentError(name, `Could not reach ${name}: ${cause.message}`, cause)
  const why = cause instanceof ConnectTimeout ? cause.message : failureReason(cause)
  if (written) return connectionLost(state, `closed the connection before it responded (${why})`, cause)
  const sentence = `Could not reach ${name} at ${origin} (${why}). Check that it is running, and that mcpServers.${name}.url and its headers are correct.`
  return unsentError(name, sentence, cause)
}

/** The error for a response with an error status; `said` is its body. */
export function rejectedRequest(state: TransportState, head: ResponseHead, said = ''): ToolwayError {
  const { name, established } = state
  const { status } = head
  const code = didNotRun(status, said) ? 'SERVER_UNAVAILABLE' : brokenConnectionCode(established)
  const waitMs = retryAfterMs(head.header('retry-after'), Date.now())
  const relayed = head.relay === undefined ? '' : ` The response may have come from the proxy ${head.relay}.`
  const requestOnly = established && aboutRequest.has(status) ? (true as const) : undefined
  const cause = new HttpStatus(status, pointsToOAuth(head))
  const details = { server: name, retryAfterMs: waitMs, requestOnly, cause }
  return new ToolwayError(code, `${name} ${rejectionText(state, head, said)}${relayed}`, details)
}

/** The error for a rejection by a server whose session id cannot be sent back. */
export const unusableSession = ({ name }: TransportState, { status }: ResponseHead): ToolwayError =>
  new ToolwayError(
    'SERVER_UNAVAILABLE',
    `${name} sent an invalid Mcp-Session-Id, and rejected the request without it (HTTP ${status}). A session id has up to 1,024 visible ASCII characters.`,
    { server: name, cause: new HttpStatus(status) },
  )

/** The error for requests that were not sent because the server has ended the session. */
export const sessionEnded = ({ name }: TransportState): ToolwayError =>
  unsentError(name, `${name} has ended the session; try again.`)

/** The error for requests that a server of another revision rejected unread. */
export const protocolChanged = ({ name }: TransportState): ToolwayError =>
  unsentError(name, `${name} now uses another protocol revision; try again.`)

/** The error for a request rejected because of its session. Some servers run such a request before rejecting it. */
export function rejectedSession(
  server: string,
  status: number,
  fresh: boolean,
  repeatable = false,
  code: ErrorCode = 'OUTCOME_UNKNOWN',
): ToolwayError {
  const what = fresh ? 'rejected the session that it had just opened' : 'ended the session'
  return new ToolwayError(code, `${server} ${what} (HTTP ${status}).`, {
    server,
    sessionEnded: fresh ? 'fresh' : 'established',
    resendable: repeatable && !fresh ? true : undefined,
    cause: new HttpStatus(status),
  })
}

const httpStatusOf = (error: unknown): HttpStatus | undefined => {
  const cause = error instanceof ToolwayError ? error.details.cause : undefined
  return cause instanceof HttpStatus ? cause : undefined
}

export const statusOf = (error: unknown): number | undefined => httpStatusOf(error)?.status

/** Whether the error is from a server that requires a credential and says where to get one with OAuth. */
export const offersOAuth = (error: unknown): boolean => httpStatusOf(error)?.offersOAuth === true

const pointsToOAuth = (head: ResponseHead): boolean =>
  head.status === 401 && readChallenge(401, head.all('www-authenticate')).resourceMetadata !== undefined

/** Whether the error is typical of servers that support only the older HTTP+SSE transport. */
export const refusesStreamableHttp = (error: unknown): boolean => [400, 404, 405].includes(statusOf(error) ?? 0)

/**
 * Whether a status means that the request was not executed. A 303 is sent after execution, and some proxies send 503
 * when the connection to the server broke during the request.
 */
const didNotRun = (status: number, said: string): boolean =>
  (status >= 300 && status < 500 && status !== 303) ||
  status === 501 ||
  (status === 503 && !said.includes('reset before headers')) ||
  status === 505

/**
 * The statuses of refusals that can be about one request, for its size or its content; firewalls send 403 for that. The
 * others are about the server, its load, or a credential.
 */
const aboutRequest: ReadonlySet<number> = new Set([400, 403, 413, 414, 415, 422, 431, 451])

const tooLargeStatuses: ReadonlySet<number> = new Set([413, 414, 431])

function rejectionText({ name, origin, established }: TransportState, head: ResponseHead, said: string): string {
  const { status } = head
  const setting = `mcpServers.${name}`
  const advice = established ? '' : ` Check ${setting}.url.`
  if (status < 300) return `responded with HTTP ${status} and no message.${advice}`
  if (status === 303) return `responded with a redirect instead of a message.${advice}`
  if (status < 400)
    return `redirects to ${redirectOrigin(head.header('location'), origin)}, and such redirects are not followed. Set ${setting}.url to the final URL.`
  if (pointsToOAuth(head))
    return `requires a sign-in (HTTP ${status}). Set ${setting}.auth.type to oauth and sign in, or check ${setting}.headers.`
  if (status === 401 || status === 403)
    return `rejected the credential (HTTP ${status}). Check ${setting}.auth and ${setting}.headers.`
  if (!didNotRun(status, said)) return `failed (HTTP ${status}).${established ? '' : ' See its log.'}`
  if (status === 429 || status === 503) return `is too busy (HTTP ${status}); the call did not run. Try again later.`
  if (!established) return `rejected the request (HTTP ${status}). Check ${setting}.url.`
  if (!aboutRequest.has(status)) return `rejected the request (HTTP ${status}). Try again.`
  const why = tooLargeStatuses.has(status) ? ' because it is too large' : ''
  return `rejected the request${why} (HTTP ${status}); the call did not run. Change its arguments: it would be rejected again unchanged.`
}

/** The origin of a redirect's target. The rest of a URL may contain secrets. */
function redirectOrigin(location: string | undefined, from: string): string {
  if (location === undefined || !URL.canParse(location, from)) return 'another URL'
  const { origin } = new URL(location, from)
  return origin === from ? `another path of ${origin}` : origin
}
