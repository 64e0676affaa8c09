import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RawSession, rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'

const open = new AsyncDisposableStack()
let session: RawSession

beforeAll(async () => {
  const mcpServers = { everything: stdioServers.everything(), probe: stdioServers.probe() }
  session = await rawSession(open.use(await startToolway({ mcpServers })))
})

afterAll(() => open.disposeAsync())

test.each([
  ['everything', 'get-tiny-image', {}],
  ['everything', 'get-structured-content', { location: 'New York' }],
  ['everything', 'get-annotated-message', { messageType: 'error', includeImage: true }],
  ['probe', 'odd', {}],
] as const)('B2, T2: the result of %s.%s leaves Toolway byte for byte as it came', async (server, tool, args) => {
  const through = await session.ask('tools/call', { name: `${server}.${tool}`, arguments: args })
  const own = await askDirectly(stdioServers[server](), tool, args)
  expect(resultIn(through)).toBe(resultIn(own))
})

test('T2: so does an error', async () => {
  const error = { code: -31999, message: 'no', data: { deep: [{ er: 1e-7 }] } }
  const through = await session.ask('tools/call', { name: 'probe.fail', arguments: { error } })
  expect(through).toContain(`"error":${JSON.stringify(error)}`)
})

/** The text of the result, between the first and the last brace that belong to it, wherever the server puts the id. */
function resultIn(message: string): string {
  const start = message.indexOf('"result":') + '"result":'.length
  const text = message.slice(start).replace(/,"jsonrpc":"2\.0".*$/, '}')
  return text.slice(0, text.lastIndexOf('}'))
}

/** Speaks to the server without Toolway and without an SDK. */
async function askDirectly(entry: Readonly<Record<string, unknown>>, tool: string, args: object): Promise<string> {
  const child = spawn(entry.command as string, entry.args as string[], { stdio: ['pipe', 'pipe', 'ignore'] })
  const lines = createInterface({ input: child.stdout })
  const say = (message: object) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
  const clientInfo = { name: 'direct', version: '1.0.0' }
  say({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } })
  await once(lines, 'line')
  say({ method: 'notifications/initialized' })
  say({ id: 2, method: 'tools/call', params: { name: tool, arguments: args } })
  try {
    for await (const line of lines) if (line.includes('"id":2')) return line
    throw new Error(`${tool} was not answered`)
  } finally {
    child.kill('SIGKILL')
  }
}
