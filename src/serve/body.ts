import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpConfig } from '../config/schema.ts'
import { hasMoreValues } from '../core/json-text/values.ts'
import { growing } from '../wire/bytes.ts'
import { networkOf } from './authenticate/address-limit.ts'
import type { Identity } from './authenticate/index.ts'
import { type BodyAccount, createBodyBudget } from './body-budget.ts'
import type { HttpRequest } from './http1/request.ts'
import { checkMediaType } from './media-type.ts'
import { Refusal, rpc } from './refusal.ts'

/** Reads the JSON bodies of requests, and bounds what they take in memory until their requests are answered. */
export interface Bodies {
  /**
   * The body of a request; throws or rejects with a refusal as soon as it is clear that it is not taken. `identity` is
   * undefined where nobody has been authenticated yet; `limit` is in the place of `server.maxBody`.
   */
  read(asked: Asked): Promise<Buffer> | Buffer
}

interface Asked {
  readonly request: HttpRequest
  readonly response: ServerResponse
  readonly identity: Identity | undefined
  readonly limit?: number | undefined
}

export type BodyLimits = Pick<HttpConfig, 'maxBody' | 'maxValues' | 'maxInFlight' | 'maxInFlightPerCaller'>

/** Bodies up to this size that come whole are not counted: most requests are such, and connections are bounded. */
const uncounted = 16 * 1024

export function createBodies({ maxBody, maxValues, ...limits }: BodyLimits): Bodies {
  const budget = createBodyBudget(limits)

  const accountOf = ({ request, response, identity }: Asked): BodyAccount => {
    const account = budget.open(callerOf(request, identity))
    if (response.closed) throw incomplete()
    response.once('close', account.close)
    return account
  }

  const checked = (body: Buffer): Buffer => {
    if (hasMoreValues(body, maxValues)) throw tooManyValues(maxValues)
    return body
  }

  return {
    read(asked) {
      const { request, limit = maxBody } = asked
      checkHeaders(request, limit)
      const { body } = request
      if (body === undefined) return bodyOf(request as IncomingMessage, limit, accountOf(asked)).then(checked)
      if (body.length > uncounted) accountOf(asked).add(body.length)
      return checked(body)
    },
  }
}

/** Callers without a credential are told apart by their address. */
function callerOf({ socket: { remoteAddress = '' } }: HttpRequest, identity: Identity | undefined): string {
  return identity?.authenticated ? identity.principal : `address ${networkOf(remoteAddress)}`
}

function bodyOf(request: IncomingMessage, limit: number, account: BodyAccount): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Small pieces are copied together: a sender of single bytes must not cost a hundred times what it sends.
    const gathered = growing()
    const onData = (chunk: Buffer) => {
      try {
        if (gathered.length + chunk.length > limit) throw tooLarge(limit)
        account.add(chunk.length)
        gathered.append(chunk)
      } catch (refusal) {
        request.off('data', onData).pause()
        gathered.take()
        account.close()
        reject(refusal)
      }
    }
    request.on('data', onData)
    request.on('end', () => resolve(gathered.take()))
    // Nobody is left to read this answer; the rejection only ends our own waiting.
    request.on('close', () => {
      if (!request.complete) reject(incomplete())
    })
  })
}

function checkHeaders({ headers }: HttpRequest, limit: number): void {
  checkMediaType(headers['content-type'])
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Refusal(415, rpc.request, 'Compressed bodies are not accepted: send the JSON as it is.')
  }
  if (Number(headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
}

const incomplete = () => new Refusal(400, rpc.parse, 'The body ended before it was complete.')

const tooLarge = (limit: number) =>
  new Refusal(413, rpc.request, `The body is larger than ${limit} bytes: send less, or raise server.maxBody.`)

const tooManyValues = (limit: number) =>
  new Refusal(413, rpc.request, `The body has more than ${limit} values: send fewer, or raise server.maxValues.`)
