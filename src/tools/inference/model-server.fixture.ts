import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body as JSON. */
  readonly json: Readonly<Record<string, unknown>>
}

export type Reply = (asked: Asked, response: ServerResponse) => unknown

export interface ScriptedServer extends AsyncDisposable {
  readonly origin: string
  readonly baseUrl: string
  readonly asked: readonly Asked[]
}

/** A model server whose paths are functions, on a free port. */
export async function scriptedServer(paths: Readonly<Record<string, Reply>>): Promise<ScriptedServer> {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const { method = '', url: path = '', headers } = request
    const isJson = headers['content-type'] === 'application/json'
    const one = { method, path, headers, body, json: isJson ? JSON.parse(body.toString()) : {} }
    asked.push(one)
    const reply = paths[path.replace(/^\/v1/, '').replace(/\?.*/, '')]
    if (reply) reply(one, response)
    else answers(404, { error: { message: 'no such path' } })(one, response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    baseUrl: `${origin}/v1`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

export const answers =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  (_asked, response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

export const sends =
  (type: string, bytes: Buffer): Reply =>
  (_asked, response) =>
    response.writeHead(200, { 'content-type': type }).end(bytes)

/** A chat completion. */
export const says = (content: string, finish_reason = 'stop'): Reply =>
  answers(200, {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason }],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  })

export const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
export const wav = Buffer.from('RIFF\x10\0\0\0WAVEfmt ', 'latin1')
export const mp3 = Buffer.from('ID3\x04rest of it', 'latin1')
