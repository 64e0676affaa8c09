import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A request that the server got. */
export interface Asked {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: AskedBody
  /** Settles when the connection was closed before the answer had been sent whole. */
  readonly abandoned: Promise<void>
}

export interface AskedBody {
  readonly model: string
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly stream: boolean
  readonly tools?: readonly { readonly function: Readonly<Record<string, unknown>> }[]
  readonly response_format?: { readonly type: string; readonly json_schema?: Readonly<Record<string, unknown>> }
  readonly [field: string]: unknown
}

export type Reply = (asked: Asked, response: ServerResponse) => unknown

/** A real OpenAI-compatible server whose behaviour is a script, on a free port. */
export interface ModelServer extends AsyncDisposable {
  readonly baseUrl: string
  readonly asked: readonly Asked[]
  /** How many connections there have been. */
  readonly connections: number
  /** The request of this number, as soon as it has come. */
  request(number: number): Promise<Asked>
}

/** Answers the first request with the first reply, and so on; the last one is repeated. */
export async function modelServer(...replies: readonly Reply[]): Promise<ModelServer> {
  const asked: Asked[] = []
  const sockets = new Set<Socket>()
  const waiting = new Set<() => void>()
  let connections = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { promise, resolve } = Promise.withResolvers<void>()
    response.on('close', () => response.writableFinished || resolve())
    response.on('error', () => {})
    const { url: path = '', headers } = request
    const one: Asked = { path, headers, body: JSON.parse(Buffer.concat(chunks).toString()), abandoned: promise }
    asked.push(one)
    for (const look of [...waiting]) look()
    await replies[Math.min(asked.length, replies.length) - 1]?.(one, response)
  })
  server.on('connection', (socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    get connections() {
      return connections
    },
    request: (number) =>
      new Promise((resolve) => {
        const look = () => {
          const found = asked[number - 1]
          if (!found) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }

/** Answers as a good server would, whole or in pieces as it is asked to. */
export const answers =
  (message: Readonly<Record<string, unknown>>, finish = 'stop', extra: object = {}): Reply =>
  ({ body }, response) => {
    const common = { id: 'chatcmpl-1', created: 1, model: body.model, ...extra }
    if (!body.stream) {
      const choices = [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: finish }]
      return json(response, { ...common, object: 'chat.completion', choices, usage })
    }
    const chunk = (delta: object, end: string | null = null) => ({
      ...common,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: end }],
    })
    events(response)
    send(response, chunk({ role: 'assistant', content: '' }))
    for (const delta of pieces(message)) send(response, chunk(delta))
    send(response, chunk({}, finish))
    if (body.stream_options) send(response, { ...common, object: 'chat.completion.chunk', choices: [], usage })
    response.end('data: [DONE]\n\n')
  }

export const says = (content: string, finish?: string): Reply => answers({ content }, finish)

/** Calls tools; the arguments are sent in pieces where the answer is. */
export const calls = (
  ...all: readonly { readonly name: string; readonly arguments: unknown; readonly id?: string }[]
): Reply =>
  answers(
    {
      tool_calls: all.map(({ name, arguments: args, id }, index) => ({
        id: id ?? `call_${index}`,
        type: 'function',
        function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
      })),
    },
    'tool_calls',
  )

function* pieces(message: Readonly<Record<string, unknown>>): Generator<object> {
  for (const field of ['reasoning_content', 'content'] as const) {
    const text = message[field]
    if (typeof text === 'string') for (const part of text.match(/[\s\S]{1,5}/g) ?? []) yield { [field]: part }
  }
  const calls = (message.tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[]
  for (const [index, { id, function: called }] of calls.entries()) {
    yield { tool_calls: [{ index, id, type: 'function', function: { name: called.name, arguments: '' } }] }
    for (const part of called.arguments.match(/[\s\S]{1,4}/g) ?? [])
      yield { tool_calls: [{ index, function: { arguments: part } }] }
  }
}

export function json(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export function events(response: ServerResponse, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers }).flushHeaders()
}

export const send = (response: ServerResponse, data: unknown): boolean =>
  response.write(`data: ${JSON.stringify(data)}\n\n`)

/** A piece of text of a stream. */
export const piece = (content: string, finish: string | null = null): object => ({
  choices: [{ index: 0, delta: { content }, finish_reason: finish }],
})

/** Refuses with a status, in the words of OpenAI. */
export const refuses =
  (status: number, message: string, headers: Record<string, string> = {}): Reply =>
  (_asked, response) =>
    json(response, { error: { message, type: 'invalid_request_error', param: null, code: null } }, status, headers)

/** Refuses requests of one kind, and leaves the others to another reply. */
export const refusesIf =
  (isRefused: (body: AskedBody) => boolean, message: string, otherwise: Reply): Reply =>
  (asked, response) =>
    isRefused(asked.body) ? refuses(400, message)(asked, response) : otherwise(asked, response)

/** Sends these bytes one write at a time, each on its way before the next. */
export const sends =
  (type: string, ...writes: readonly (string | Uint8Array)[]): Reply =>
  async (_asked, response) => {
    response.writeHead(200, { 'content-type': type })
    for (const write of writes) await new Promise((sent) => response.write(write, sent))
    response.end()
  }

/** Begins an answer and then says nothing more, without ending it. */
export const stalls =
  (...begin: readonly string[]): Reply =>
  (_asked, response) => {
    events(response)
    for (const text of begin) send(response, piece(text))
  }

/** Takes the request and never answers. */
export const ignores: Reply = () => {}

/** Begins an answer and then hangs up. */
export const hangsUp =
  (...begin: readonly string[]): Reply =>
  async (_asked, response) => {
    if (begin.length === 0) return void response.socket?.destroy()
    events(response)
    for (const text of begin)
      await new Promise((sent) => response.write(`data: ${JSON.stringify(piece(text))}\n\n`, sent))
    response.socket?.destroy()
  }
