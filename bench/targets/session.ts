import { type Aim, firstId, type PreparedRequest } from '../load/orders.ts'
import { ask } from './ask.ts'

/** A session of the older revisions, or the one of 2026-07-28 without any. */
export type Era = 'legacy' | 'modern'

/** A way to ask one target for things, in the words of one era. */
export interface Session {
  /** The request as bytes, for the generator. `expected` must be in its answer. */
  prepare(
    method: string,
    params: Readonly<Record<string, unknown>>,
    expected: string,
    leastBytes?: number,
  ): PreparedRequest
  /** A message as it is, a batch for one. */
  prepareMessage(message: string, expected: string): PreparedRequest
  aim(...requests: readonly PreparedRequest[]): Aim
  /** One call of a tool, over and over. */
  calls(tool: string, expected?: string, leastBytes?: number): Aim
  /** Asks once, outside of any measurement; the result. */
  ask(method: string, params?: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>
  /** Says goodbye, where there is somebody to say it to. */
  end(): Promise<void>
}

export interface SessionOptions {
  readonly url: string
  readonly token?: string
  readonly era?: Era
  readonly revision?: string
}

const clientInfo = { name: 'bench', version: '1.0.0' }
const modernRevision = '2026-07-28'

/** Opens a session, or prepares to do without one. */
export async function openSession({
  url,
  token,
  era = 'legacy',
  revision = '2025-11-25',
}: SessionOptions): Promise<Session> {
  const { host, port, pathname, search } = new URL(url)
  const shared: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(token && { authorization: `Bearer ${token}` }),
  }
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': modernRevision,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': clientInfo,
  }

  const headersFor = (method: string, { name }: Readonly<Record<string, unknown>>): Record<string, string> =>
    era === 'legacy'
      ? shared
      : {
          ...shared,
          'mcp-protocol-version': modernRevision,
          'mcp-method': method,
          ...(typeof name === 'string' && { 'mcp-name': name }),
        }
  const messageOf = (method: string, params: Readonly<Record<string, unknown>>): string =>
    JSON.stringify({
      jsonrpc: '2.0',
      id: firstId,
      method,
      params: era === 'legacy' ? params : { ...params, _meta: envelope },
    })
  const headOf = (headers: Record<string, string>): string =>
    [
      `POST ${pathname}${search} HTTP/1.1`,
      `host: ${host}`,
      ...Object.entries(headers).map((pair) => pair.join(': ')),
    ].join('\r\n')

  if (era === 'legacy') {
    const params = { protocolVersion: revision, capabilities: {}, clientInfo }
    const welcome = await ask(url, { headers: shared, body: messageOf('initialize', params) })
    if (welcome.status !== 200)
      throw new Error(`${url} answered initialize with ${welcome.status}: ${welcome.text.slice(0, 300)}`)
    const id = welcome.headers['mcp-session-id']
    if (typeof id === 'string') shared['mcp-session-id'] = id
    shared['mcp-protocol-version'] = revision
    const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await ask(url, { headers: shared, body: initialized })
  }

  const prepare: Session['prepare'] = (method, params, expected, leastBytes) => ({
    head: headOf(headersFor(method, params)),
    message: messageOf(method, params),
    expected,
    ...(leastBytes !== undefined && { leastBytes }),
  })
  const aim: Session['aim'] = (...requests) => ({ port: Number(port), requests })
  return {
    prepare,
    prepareMessage: (message, expected) => ({ head: headOf(shared), message, expected }),
    aim,
    calls: (tool, expected = 'Echo: ', leastBytes) =>
      aim(prepare('tools/call', { name: tool, arguments: { message: 'hello' } }, expected, leastBytes)),
    async ask(method, params = {}) {
      const said = await ask(url, { headers: headersFor(method, params), body: messageOf(method, params) })
      const { result, error } = JSON.parse(messageIn(said.text)) as {
        result?: Record<string, unknown>
        error?: unknown
      }
      if (result === undefined) throw new Error(`${method} at ${url}: ${said.status} ${JSON.stringify(error)}`)
      return result
    },
    async end() {
      if (shared['mcp-session-id'] !== undefined) await ask(url, { headers: shared, method: 'DELETE' })
    },
  }
}

/** The message itself, also where it came as an event. */
const messageIn = (text: string): string => (/^data: (\{.*)$/m.exec(text)?.[1] ?? text).trim()
