import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { describe, expect, test } from 'vitest'
import { serverProgram } from '../fixtures/programs.ts'
import { type Eras, startFixture } from './fixture/http.ts'

const program = serverProgram('conformance')

const negotiated: [Eras, string][] = [
  ['both', '2026-07-28'],
  ['modern', '2026-07-28'],
  ['legacy', '2025-11-25'],
]

async function meet(transport: StreamableHTTPClientTransport | StdioClientTransport) {
  const client = new Client({ name: 'story', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(transport)
  const { content } = await client.callTool({ name: 'test_simple_text' })
  const version = client.getNegotiatedProtocolVersion()
  await client.close()
  return { version, content }
}

const greeting = [{ type: 'text', text: 'This is a simple text response for testing.' }]

describe.each(negotiated)('a fixture of the revision %s', (eras, version) => {
  test('B2: a client that knows both eras finds the right one over HTTP', async () => {
    await using fixture = await startFixture({ eras })
    expect(await meet(new StreamableHTTPClientTransport(new URL(fixture.url)))).toEqual({ version, content: greeting })
  })

  test('B2: and over stdio', async () => {
    const args = [program, '--stdio', '--eras', eras]
    const transport = new StdioClientTransport({ command: process.execPath, args })
    expect(await meet(transport)).toEqual({ version, content: greeting })
  })
})
