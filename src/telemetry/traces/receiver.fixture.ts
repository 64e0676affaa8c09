import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The names of the spans in it. */
  readonly names: readonly string[]
}

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly received: readonly Received[]
  /** What it answers to the first, the second and so on; nothing at all to those for which this gives nothing. */
  answers(next: (number: number) => Answer | undefined): void
}

export const plainDelivery = { gzip: false, timeoutMs: 10_000 } as const

export const taken: Answer = { status: 200, body: '\x0a\0' }

/** An HTTP server that takes batches and says what a test wants it to say. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  let answer: (number: number) => Answer | undefined = () => taken
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const { method = '', url = '', headers } = request
    const names = [...body.toString('latin1').matchAll(/span [\w ]+/g)].map(([name]) => name)
    received.push({ method, url, headers, body, names })
    const said = answer(received.length)
    if (said) response.writeHead(said.status, { ...said.headers }).end(said.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answers(next) {
      answer = next
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
