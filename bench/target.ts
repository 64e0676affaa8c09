import { Pool } from 'undici'

/** One way to reach the echo tool. */
export interface Target extends AsyncDisposable {
  readonly name: string
  /** What the echo tool is called there. */
  readonly tool: string
  /** Sends one request and reads the whole answer, which must contain `expected`. */
  ask(method: string, params: object, expected: string): Promise<void>
}

export interface TargetOptions {
  readonly name: string
  readonly tool: string
  readonly url: string
  readonly token?: string
  readonly connections: number
}

/** Opens a session by hand; the same raw client for every target, so that its own cost is the same for all. */
export async function openTarget({ name, tool, url, token, connections }: TargetOptions): Promise<Target> {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(token && { authorization: `Bearer ${token}` }),
  }
  let lastId = 0
  const post = (message: object) =>
    pool.request({ method: 'POST', path: pathname, headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) })

  const clientInfo = { name: 'bench', version: '1.0.0' }
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
  const hello = await post({ id: ++lastId, method: 'initialize', params })
  await hello.body.dump()
  const session = hello.headers['mcp-session-id']
  if (session !== undefined) headers['mcp-session-id'] = String(session)
  await (await post({ method: 'notifications/initialized' })).body.dump()

  return {
    name,
    tool,
    async ask(method, params, expected) {
      const { body } = await post({ id: ++lastId, method, params })
      const text = await body.text()
      if (!text.includes(expected)) throw new Error(`${name} answered ${text.slice(0, 300)}`)
    },
    [Symbol.asyncDispose]: () => pool.destroy(),
  }
}
