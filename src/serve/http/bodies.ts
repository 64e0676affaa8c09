import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { HttpConfig } from '../../config/schema.ts'
import { Budget, type Budgets } from '../../core/limits/budget.ts'
import { WorkTurns } from '../../core/limits/turns.ts'
import { hasMoreValues } from '../../json/json-text.ts'
import { createByteCollector } from '../../wire/bytes.ts'
import type { AuthIdentity } from '../auth/identity.ts'
import { networkOf } from '../auth/throttle.ts'
import { HttpError, rpcCodes } from '../errors.ts'
import type { ReceivedRequest } from './request.ts'

export type RequestBodies = ReturnType<typeof createBodyReader>

/** The handling of a request, which may go on after its client has disconnected. Its body stays counted that long. */
export interface RequestWork {
  active: boolean
  /** Set if the response was closed first. Must be called when the work ends. */
  ended?: () => void
}

interface BodyRequest {
  readonly work?: RequestWork | undefined
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  /** Undefined before authentication. */
  readonly identity: AuthIdentity | undefined
  /** Overrides `server.maxBody`. */
  readonly limit?: number | undefined
}

/** Size up to which buffered bodies are not counted. Most are smaller, and connections are limited anyway. */
const maxUncountedBody = 16 * 1024

/**
 * Bodies of this size and above are processed one at a time. Parsing one takes milliseconds, and requests that arrive
 * in the meantime should wait for one of them, not for all.
 */
const largeBody = 64 * 1024

/** Reads JSON request bodies, and limits the memory that they use until their requests are answered. */
export function createBodyReader(
  { maxBody, maxValues, ...limits }: Pick<HttpConfig, 'maxBody' | 'maxValues'> & BodyBudgetLimits,
  budgets?: Pick<Budgets, 'register' | 'requests'>,
) {
  const budget = createBodyBudget(limits)
  budgets?.register('request_bytes', budget.use)

  const accountOf = ({ request, response, identity, work }: BodyRequest): BodyAccount => {
    const account = budget.open(bodyCaller(request, identity))
    if (response.closed) throw incomplete()
    response.once('close', () => {
      if (work?.active) work.ended = account.close
      else account.close()
    })
    return account
  }

  const turns = new WorkTurns()

  const checked = (body: Buffer): Buffer => {
    if (hasMoreValues(body, maxValues)) throw bodyTooManyValues(maxValues)
    return body
  }

  /** Hands on a large body in its turn. If the client disconnects before, the body does not stay in memory. */
  const inTurn = (whole: Buffer, { request, response, identity }: BodyRequest): Promise<Buffer> => {
    if (response.closed) throw incomplete()
    const principal = identity?.principal ?? ''
    const othersWait = () => budgets !== undefined && budgets.requests.used > budgets.requests.usedBy(principal)
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    let waiting: Buffer | undefined = whole
    const gone = () => {
      waiting = undefined
      reject(incomplete())
    }
    response.once('close', gone)
    void turns.take(bodyCaller(request, identity), othersWait).then(() => {
      response.off('close', gone)
      if (waiting) resolve(waiting)
    })
    return promise.then(checked)
  }

  return {
    /** Reads a body. Fails as early as possible, with an HttpError. */
    read(asked: BodyRequest): Promise<Buffer> | Buffer {
      const { request, limit = maxBody } = asked
      checkHeaders(request, limit)
      const { body } = request
      if (body === undefined) {
        const reading = collectBody(request as IncomingMessage, limit, accountOf(asked))
        return reading.then((whole) => (whole.length > largeBody ? inTurn(whole, asked) : checked(whole)))
      }
      if (body.length > maxUncountedBody) accountOf(asked).add(body.length)
      return checked(body)
    },
  }
}

/** The caller whose budget a body is counted against. Anonymous callers are distinguished by address. */
function bodyCaller({ socket: { remoteAddress = '' } }: ReceivedRequest, identity: AuthIdentity | undefined): string {
  return identity?.authenticated ? identity.principal : `address ${networkOf(remoteAddress)}`
}

function collectBody(request: IncomingMessage, limit: number, account: BodyAccount): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Copy chunks into one buffer: many tiny chunks would use several times their size in memory.
    const gathered = createByteCollector()
    const onData = (chunk: Buffer) => {
      try {
        if (gathered.length + chunk.length > limit) throw bodyTooLarge(limit)
        account.add(chunk.length)
        gathered.append(chunk)
      } catch (refusal) {
        request.off('data', onData).pause()
        gathered.clear()
        account.close()
        // Not at once: a client that repeats refused requests at full speed would keep this process from serving others.
        if (refusal instanceof HttpError && refusal.status === 429) setTimeout(refusedMs).then(() => reject(refusal))
        else reject(refusal)
      }
    }
    request.on('data', onData)
    request.on('end', () => resolve(gathered.take()))
    // The client has disconnected and does not see this error; the error only ends the wait.
    request.on('close', () => {
      if (!request.complete) reject(incomplete())
    })
  })
}

function checkHeaders({ headers }: ReceivedRequest, limit: number): void {
  checkMediaType(headers['content-type'])
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new HttpError(415, rpcCodes.request, 'Compressed bodies are not supported: send uncompressed JSON.')
  }
  if (Number(headers['content-length'] ?? 0) > limit) throw bodyTooLarge(limit)
}

/** How long a request waits for its refusal if the requests in flight have reached a limit. */
const refusedMs = 500

const incomplete = () => new HttpError(400, rpcCodes.parse, 'The body is incomplete.')

const bodyTooLarge = (limit: number, setting = 'server.maxBody') =>
  new HttpError(413, rpcCodes.request, `The body is larger than ${limit} bytes: send less, or raise ${setting}.`)

const bodyTooManyValues = (limit: number) =>
  new HttpError(413, rpcCodes.request, `The body has more than ${limit} values: send fewer, or raise server.maxValues.`)

interface BodyAccount {
  add(bytes: number): void
  /** Releases all reserved bytes. May be called repeatedly. */
  close(): void
}

const bodyRetryAfterMs = 1_000

type BodyBudgetLimits = Pick<HttpConfig, 'maxInFlight' | 'maxInFlightPerCaller'>

/** Limits the total size of all request bodies in flight, per caller and overall. */
export function createBodyBudget({ maxInFlight: limit, maxInFlightPerCaller: perCaller }: BodyBudgetLimits) {
  const budget = new Budget('request_bytes', { what: 'bytes of requests', limit, perCaller })
  return {
    use: () => budget.use(),
    open(caller: string): BodyAccount {
      let own = 0
      return {
        add(bytes) {
          if (own + bytes > perCaller) throw bodyTooLarge(perCaller, 'server.maxInFlightPerCaller')
          const reached = budget.take(caller, bytes)
          if (reached === 'caller') {
            throw tooManyBodyBytes('Your requests in flight exceed', perCaller, 'server.maxInFlightPerCaller')
          }
          if (reached) throw tooManyBodyBytes('All requests in flight exceed', limit, 'server.maxInFlight')
          own += bytes
        },
        close() {
          budget.give(caller, own)
          own = 0
        },
      }
    },
  }
}

const tooManyBodyBytes = (who: string, limit: number, rule: string) =>
  HttpError.of('RATE_LIMITED', `${who} ${limit} bytes, the limit set by ${rule}. Wait until some are answered.`, {
    retryAfterMs: bodyRetryAfterMs,
    rule,
  })

const usualMediaTypes: ReadonlySet<string> = new Set(['application/json', 'application/json; charset=utf-8'])

const mediaTypeToken = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const form = new RegExp(
  `^application/json((?:[ \\t]*;(?:[ \\t]*${mediaTypeToken}=(?:${mediaTypeToken}|"(?:[^"\\\\]|\\\\.)*"))?)*)[ \\t]*$`,
  'i',
)
const mediaTypeParameter = new RegExp(`(${mediaTypeToken})=(?:(${mediaTypeToken})|"((?:[^"\\\\]|\\\\.)*)")`, 'g')

/** Throws a 415 unless the type is JSON in UTF-8, the only encoding that RFC 8259 allows for interchange. */
function checkMediaType(type: string | undefined): void {
  if (type !== undefined && usualMediaTypes.has(type)) return
  const parameters = type === undefined ? undefined : form.exec(type)?.[1]
  if (parameters === undefined)
    throw unsupportedMediaType('The body must be JSON: send "Content-Type: application/json".')
  const charsets: string[] = []
  for (const [, name = '', plain, quoted = ''] of parameters.matchAll(mediaTypeParameter)) {
    // Also match `charset*`, the extended form of RFC 5987.
    if (/^charset\*?/i.test(name)) charsets.push(plain ?? quoted.replace(/\\(.)/g, '$1'))
  }
  const [charset, second] = charsets
  if (second !== undefined)
    throw unsupportedMediaType('The Content-Type header has more than one charset: send only UTF-8.')
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw unsupportedMediaType('The body must be in UTF-8: send "Content-Type: application/json".')
  }
}

const unsupportedMediaType = (sentence: string) => new HttpError(415, rpcCodes.request, sentence)
