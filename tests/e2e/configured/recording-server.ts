import type { ServerResponse } from 'node:http'
import { type Got, json, result, rogueHttp } from '../../fixtures/rogue-http.ts'

/** An MCP server inside this process, which keeps what it was sent. */
export interface RecordingMcpServer extends AsyncDisposable {
  readonly url: string
  /** What was sent to it, in the order in which it came. */
  readonly requests: readonly Got[]
  /** Of that, what has this method. */
  got(method: string): readonly Got[]
  /** How many calls of `hold` wait for `release`. */
  readonly held: number
  release(): void
  /** Adds a tool, without a word about it. */
  add(tool: string): void
}

const introduction = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'desk', version: '1.0.0' },
}

export async function startRecordingMcpServer(): Promise<RecordingMcpServer> {
  const waiting: (() => void)[] = []
  const looked = new Map<unknown, number>()
  const names = ['hold', 'look', 'drop']
  const answer = (response: ServerResponse, id: unknown, text: string) =>
    json(response, result(id, { content: [{ type: 'text', text }] }))

  const calls: Record<string, (id: unknown, key: unknown, response: ServerResponse) => void> = {
    /** Answers when it is let go. */
    hold: (id, _key, response) => waiting.push(() => answer(response, id, 'held')),
    /** Says how often it was asked for this key. */
    look(id, key, response) {
      const count = (looked.get(key) ?? 0) + 1
      looked.set(key, count)
      answer(response, id, String(count))
    },
    /** Hangs up. */
    drop: (_id, _key, response) => response.destroy(),
  }

  const server = await rogueHttp(({ method, message }, response) => {
    if (method !== 'POST') return response.writeHead(405).end()
    const { id, method: asked, params } = message ?? {}
    if (id === undefined) return response.writeHead(202).end()
    if (asked === 'initialize') return json(response, result(id, introduction))
    if (asked === 'tools/list') {
      return json(response, result(id, { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) }))
    }
    if (asked === 'tools/call') {
      const name = params?.name ?? ''
      const call = calls[name] ?? (() => answer(response, id, name))
      return call(id, params?.arguments?.key, response)
    }
    const error = { code: -32601, message: 'Method not found' }
    return json(response, JSON.stringify({ jsonrpc: '2.0', id, error }))
  })
  return {
    url: server.url,
    requests: server.got,
    got: (method) => server.got.filter(({ message }) => message?.method === method),
    get held() {
      return waiting.length
    },
    release() {
      for (const go of waiting.splice(0)) go()
    },
    add: (tool) => void names.push(tool),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
