import { request as ask, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Fleet } from '../../core/fleet.ts'

/** Where one replica tells another whose request it hands over; signed, since anybody can send a header. */
const clientHeader = 'toolway-client'

/** Of one hop only, and none of the next one's business. */
const ofOneHop = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', clientHeader]

export interface HandedOver {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The body, where there is one: it has been read to find out whose the request is. */
  readonly body: Buffer | undefined
  /** The body has not been read yet, and goes on as it comes. */
  readonly unread?: boolean
  /** The other one answers to the same names. */
  readonly sameHost?: boolean
  readonly address: string
  readonly fleet: Fleet
}

/**
 * Lets another replica answer a request, as if it had come to that one. False where it cannot be reached, so that
 * nothing has been asked of it. Who is let in and as whom is decided there, once more.
 */
export function handOver(handed: HandedOver): Promise<boolean> {
  const { request, response, body, address, fleet } = handed
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const headers: Record<string, string | string[] | undefined> = withoutHop(request.headers)
  if (!handed.sameHost) delete headers.host
  headers[clientHeader] = fleet.sign(`${Date.now()} ${clientAddress(request, fleet) ?? ''}`)
  if (body !== undefined) headers['content-length'] = String(body.length)
  // A connection of its own: where that cannot be had, the request has surely not been worked on.
  const onward = ask(new URL(request.url ?? '/', address), { agent: false, method: request.method, headers })
  let connected = false
  onward.once('socket', (socket) => {
    if (!socket.connecting) connected = true
    else socket.once('connect', () => (connected = true))
  })
  onward.once('response', (answer) => {
    resolve(true)
    response.writeHead(answer.statusCode ?? 502, withoutHop(answer.headers))
    answer.pipe(response)
    answer.once('error', () => response.destroy())
  })
  onward.once('error', () => {
    // What has been written may have been worked on: the client sees a connection that breaks, and knows as much.
    if (connected) response.destroy()
    resolve(connected)
  })
  response.once('close', () => onward.destroy())
  if (handed.unread) request.pipe(onward)
  else onward.end(body)
  return promise
}

function withoutHop(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = { ...headers }
  for (const name of ofOneHop) delete kept[name]
  return kept
}

/** How old a note of another replica may be: it is written for one request. */
const freshMs = 60_000

/** Whether another replica has let this request in already, and sends it on; and where its client is. */
export function handedOver(
  { headers }: IncomingMessage,
  fleet: Fleet | undefined,
): { readonly client: string | undefined } | undefined {
  const note = fleet && headers[clientHeader]
  const [at, address] = typeof note === 'string' ? (fleet?.verify(note)?.split(' ') ?? []) : []
  if (at === undefined || Math.abs(Date.now() - Number(at)) > freshMs) return undefined
  return { client: address === '' ? undefined : address }
}

/** Where a client is, also behind another replica. */
export function clientAddress(request: IncomingMessage, fleet: Fleet | undefined): string | undefined {
  const handed = handedOver(request, fleet)
  return handed ? handed.client : request.socket.remoteAddress
}
