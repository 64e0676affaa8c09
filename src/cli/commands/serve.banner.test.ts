import { describe, expect, test } from 'vitest'
import { banner } from './serve.ts'

const plain = (_: unknown, text: string) => text
const facts = {
  version: '1.2.3',
  url: 'http://127.0.0.1:4322/mcp',
  servers: 2,
  nativeTools: 1,
  metaTools: 10,
  token: 'secret',
  tokenGenerated: true,
  files: ['toolway.yaml'],
  command: 'toolway',
}

describe('B11: the banner', () => {
  test('shows the endpoint, what it serves and the token', () => {
    const text = banner(facts, plain)
    expect(text).toMatch(/Endpoint +http:\/\/127\.0\.0\.1:4322\/mcp\n/)
    expect(text).toMatch(/Serving +2 servers, 1 native tool, 10 meta-tools\n/)
    expect(text).toMatch(/Token +secret +generated once\b.*\n/)
    expect(text).toMatch(/Config +toolway\.yaml\n/)
  })

  test('has snippets to paste', () => {
    const text = banner(facts, plain)
    expect(text).toContain(
      'claude mcp add --transport http toolway http://127.0.0.1:4322/mcp --header "Authorization: Bearer secret"\n',
    )
    const snippet = text.slice(text.indexOf('    {'), text.lastIndexOf('}') + 1)
    expect(JSON.parse(snippet)).toEqual({
      mcpServers: {
        toolway: { type: 'http', url: 'http://127.0.0.1:4322/mcp', headers: { Authorization: 'Bearer secret' } },
      },
    })
  })

  test('without a token it warns, and the snippets have none', () => {
    const text = banner({ ...facts, token: undefined }, plain)
    expect(text).toMatch(/Token +none: /)
    expect(text).not.toMatch(/Bearer|headers/)
  })

  test('without a configuration says how to get one', () => {
    const text = banner({ ...facts, servers: 0, files: [], command: 'npm run -s toolway --' }, plain)
    expect(text).toMatch(/Serving +no servers yet, 1 native tool, 10 meta-tools\n/)
    expect(text).toContain('`npm run -s toolway -- init` writes one')
  })
})
