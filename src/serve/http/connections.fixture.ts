import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { Connections, holdConnections } from './connections.ts'
import type { ReceivedRequest } from './request.ts'
import { BufferedResponse, keepAliveMs } from './response.ts'

export type Handle = (request: ReceivedRequest, response: ServerResponse) => void

interface Taken extends AsyncDisposable {
  readonly port: number
  readonly server: ReturnType<typeof createServer>
  readonly connections: Connections
  /** The server's ends of all connections, in the order in which they came. */
  readonly sockets: readonly Socket[]
}

/** A server of node:http alone, or with us before it. */
export const createTestServer = (handle: Handle) =>
  createServer({ requireHostHeader: false, keepAliveTimeout: keepAliveMs }, handle)

/** A listening server that has its connections taken. */
export async function openTaken(handle: Handle, leaving = () => false): Promise<Taken> {
  const server = createTestServer((request, response) => {
    if (connections.begin(request.socket as Socket, response)) handle(request, response)
  })
  const incoming = holdConnections(server)
  const connections = new Connections({ server, incoming, path: '/mcp', handle, leaving })
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    server,
    connections,
    sockets,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** The ways in which an answer may be made. */
const ways: Record<string, (response: ServerResponse, body: string) => void> = {
  whole(response, body) {
    if (!(response instanceof BufferedResponse && response.sendBuffered(200, body))) this.head?.(response, body)
  },
  head(response, body) {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body, 'latin1')
  },
  unsaid(response, body) {
    response.setHeader('Content-Type', 'application/json').end(body)
  },
  empty(response) {
    response.writeHead(202, { 'Content-Length': 0 }).end()
  },
  nothing(response) {
    response.writeHead(204).end()
  },
  bits(response, body) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
    for (const bit of body.match(/.{1,7}/gs) ?? []) response.write(bit)
    response.end()
  },
}

/** Answers with what was asked, after some turns, and in one way or another, as the body decides. */
export const echo: Handle = async (request, response) => {
  const body = request.body ?? Buffer.concat(await Array.fromAsync(request as IncomingMessage))
  const { method, url, headers } = request
  const names = Object.keys(ways)
  const way = names[body.length % names.length] as string
  for (let turns = body.length % 3; turns > 0; turns--) await turn()
  ways[way]?.(response, JSON.stringify({ method, url, headers, body: body.toString('hex') }))
}

/** Keeps what is asked until the test answers it. */
export function keeper() {
  const asked: { readonly request: ReceivedRequest; readonly response: BufferedResponse; gone: number }[] = []
  const handle: Handle = (request, response) => {
    const one = { request, response: response as BufferedResponse, gone: 0 }
    asked.push(one)
    response.on('close', () => one.gone++)
  }
  return { asked, handle, body: (index: number) => asked[index]?.request.body?.toString() }
}

export const sendWhole = (response: ServerResponse | undefined, json = '{}') =>
  (response as BufferedResponse).sendBuffered(200, json)
