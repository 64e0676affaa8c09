import type { Aim } from '../load/orders.ts'
import { ask } from '../targets/ask.ts'

/** Calls through mcp-hub's own interface; over MCP it answers on another connection than the one asked on. */
export async function mcpHubAim(port: number): Promise<Aim> {
  const message = JSON.stringify({ server_name: 'echo', tool: 'echo', arguments: { message: 'hello' } })
  const path = '/api/servers/tools'
  const headers = { 'content-type': 'application/json' }
  const { status, text } = await ask(`http://127.0.0.1:${port}${path}`, { headers, body: message })
  if (status !== 200 || !text.includes('Echo: ')) throw new Error(`${status}: ${text.slice(0, 200)}`)
  const head = [`POST ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, 'content-type: application/json'].join('\r\n')
  return { port, requests: [{ head, message, expected: 'Echo: ' }] }
}
