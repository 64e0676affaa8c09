import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Delivery {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Readonly<Record<string, unknown>>
}

export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly deliveries: readonly Delivery[]
  /** The delivery of this number, as soon as it has come whole. */
  delivery(number: number): Promise<Delivery>
}

export type Answer = (response: ServerResponse) => unknown

export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(code, headers).end('{}')

/** Accepts the delivery and closes the connection without a response. */
export const hangsUp: Answer = (response) => response.socket?.destroy()

/** Accepts the delivery and never responds. */
export const silent: Answer = () => {}

/** Sends a status and closes the connection in the middle of the body. */
export const breaksOff: Answer = (response) => {
  response.writeHead(200, { 'content-length': '1000' }).write('half of')
  setImmediate(() => response.socket?.destroy())
}

/** Answers the first delivery with the first answer, and so on; the last one is repeated. */
export async function receiver(...answers: readonly Answer[]): Promise<Receiver> {
  const deliveries: Delivery[] = []
  const waiting = new Set<() => void>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { url: path = '', headers } = request
    deliveries.push({ path, headers, body: JSON.parse(Buffer.concat(chunks).toString()) })
    for (const look of [...waiting]) look()
    answers[Math.min(deliveries.length, answers.length) - 1]?.(response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/artifacts`,
    deliveries,
    delivery: (number) =>
      new Promise((resolve) => {
        const look = () => {
          const found = deliveries[number - 1]
          if (!found) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
