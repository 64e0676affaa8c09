import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { endWith } from '../../core/deadline.ts'
import { plainPage } from '../../lib/html-page.ts'

/** A local HTTP server that receives the redirect at the end of a sign-in. */
export interface LoopbackRedirect extends AsyncDisposable {
  readonly redirect: URL
  /**
   * Passes each authorization response to `take` until one is accepted, and returns its outcome. Responses for which
   * `take` returns undefined are ignored, because any program on this machine can send one.
   */
  wait<T>(take: (answer: URLSearchParams) => Promise<T> | undefined, signal: AbortSignal): Promise<T>
}

const loopbackPath = '/callback'

/** Opens a local redirect, preferably on the port of an earlier sign-in, which the client may be registered with. */
export async function openLoopback(port = 0): Promise<LoopbackRedirect> {
  const server = await listening(port).catch((error) => {
    if (port === 0) throw error
    return listening(0)
  })
  const redirect = new URL(loopbackPath, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return {
    redirect,
    async wait(take, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof take>>>()
      server.on('request', (request, response) => {
        const url = URL.parse(request.url ?? '', redirect.href)
        const taken = request.method === 'GET' && url?.pathname === loopbackPath ? take(url.searchParams) : undefined
        if (!taken) return answerPage(response, 404, 'No sign-in is waiting for this response.')
        taken.then(
          (outcome) => {
            answerPage(response, 200, 'You are signed in. You can close this page and return to Toolway.')
            resolve(outcome as never)
          },
          (error: unknown) => {
            answerPage(response, 400, `Sign-in failed: ${(error as Error).message}.`)
            reject(error)
          },
        )
      })
      return (await endWith(signal, promise)) as never
    },
    async [Symbol.asyncDispose]() {
      server.close()
      // Close connections later, because the last page may still be on its way to the browser.
      setTimeout(() => server.closeAllConnections(), pageLingerMs).unref()
    },
  }
}

const pageLingerMs = 500

async function listening(port: number): Promise<Server> {
  const server = createServer({ requestTimeout: 5_000 })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function answerPage(response: ServerResponse, status: number, sentence: string): void {
  const { headers, body } = plainPage(sentence)
  response.writeHead(status, { ...headers, connection: 'close' }).end(body)
}
