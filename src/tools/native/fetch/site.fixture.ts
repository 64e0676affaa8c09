import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { VettedAddress } from '../../../egress/guarded-get.ts'

export interface Site extends AsyncDisposable {
  readonly origin: string
  readonly port: number
  /** The paths that were asked for. */
  readonly asked: readonly string[]
  readonly requests: readonly IncomingMessage[]
}

export type Page = (request: IncomingMessage, response: ServerResponse) => unknown

/** A web server on a free port whose pages are functions. */
export async function site(pages: Readonly<Record<string, Page>>): Promise<Site> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    const page = pages[(request.url ?? '').replace(/\?.*/, '')]
    if (page) page(request, response)
    else response.writeHead(404, { 'content-type': 'text/plain' }).end('nothing here')
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    requests,
    get asked() {
      return requests.map(({ url = '' }) => url)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

export const gives =
  (type: string, body: string | Buffer, status = 200, headers: Record<string, string> = {}): Page =>
  (_request, response) =>
    void response.writeHead(status, { ...(type && { 'content-type': type }), ...headers }).end(body)

export const leads = (location: string, status = 302): Page => gives('', '', status, { location })

/** Lets every URL through, to this machine. */
export const loopback: readonly VettedAddress[] = [{ address: '127.0.0.1', family: 4 }]
