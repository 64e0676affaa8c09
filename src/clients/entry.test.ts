import { describe, expect, test } from 'vitest'
import { FileProblem } from '../config/edit/file.ts'
import { type ClientKind, clientKinds, clientLabels } from '../config/import/client-kind.ts'
import { translate } from '../config/import/translate.ts'
import { parseDocument } from '../config/parse/document.ts'
import { type ClientTransport, clientText, entryFor } from './entry.ts'

const stdio: ClientTransport = {
  kind: 'stdio',
  command: '/usr/bin/node',
  args: ['main.js', 'stdio', '--config', '/x.yaml'],
}
const http: ClientTransport = {
  kind: 'http',
  url: 'http://127.0.0.1:4322/mcp',
  headers: { 'Toolway-Agent': 'me' },
  token: { variable: 'TOOLWAY_TOKEN', file: '/state/token' },
}
const entry = (client: ClientKind, way: ClientTransport) => entryFor(client, clientLabels[client], way)

describe('B11: our entry in the form of each client', () => {
  test.each(clientKinds)('%s: the entry starts this program, in the format of the client', async (client) => {
    const name = client === 'codex' ? 'config.toml' : 'settings.json'
    const text = clientText(client, name, '').edited(entry(client, stdio))
    const { tree, problems } = await parseDocument({ path: name, text: text.replaceAll('toolway', 'us') })
    expect(problems).toEqual([])
    const read = translate(tree, '', client)
    expect(read.warnings).toEqual([])
    expect(JSON.stringify(entry(client, stdio))).toContain('/x.yaml')
  })

  test.each([
    ['claude-code', 'Bearer ${TOOLWAY_TOKEN}'],
    ['cursor', 'Bearer ${env:TOOLWAY_TOKEN}'],
    ['vscode', 'Bearer ${env:TOOLWAY_TOKEN}'],
    ['gemini', 'Bearer ${TOOLWAY_TOKEN}'],
    ['opencode', 'Bearer {file:/state/token}'],
    ['windsurf', 'Bearer ${file:/state/token}'],
  ] as const)('%s: the token is referred to, never copied', (client, authorization) => {
    expect(entry(client, http)).toMatchObject({ headers: { Authorization: authorization, 'Toolway-Agent': 'me' } })
  })

  test('Codex names the variable', () => {
    expect(entry('codex', http)).toEqual({
      url: 'http://127.0.0.1:4322/mcp',
      bearer_token_env_var: 'TOOLWAY_TOKEN',
      http_headers: { 'Toolway-Agent': 'me' },
    })
  })

  test('a client that cannot read a token from elsewhere needs it as a literal in the file', () => {
    for (const client of ['zed', 'cline'] as const) {
      expect(() => entry(client, http)).toThrow('cannot read a token from a variable or file')
      const literal: ClientTransport = { ...http, token: { variable: 'X', literal: 'tw_1' } }
      expect(entry(client, literal)).toMatchObject({ headers: { Authorization: 'Bearer tw_1' } })
    }
    expect(() => entry('claude-desktop', http)).toThrow(/^Claude Desktop .*HTTP/)
    const { token: _, ...open } = http
    expect(entry('zed', open)).toEqual({ url: http.url, headers: { 'Toolway-Agent': 'me' } })
    expect(() => entry('opencode', { ...http, token: { variable: 'X' } })).toThrow('cannot read a token')
  })
})

test.each([
  ['cursor', 'mcp.json', '{"mcpServers": {"a": 1'],
  ['cursor', 'mcp.json', '{"mcpServers": []}'],
  ['codex', 'config.toml', 'mcp_servers = { a = { command = "x" } }'],
  ['codex', 'config.toml', 'a = '],
] as const)('B11: %s %s: a file that cannot be edited safely is refused: %s', (client, name, text) => {
  expect(() => clientText(client, name, text).edited(entry(client, stdio))).toThrow(FileProblem)
})

test('B11: the error for a list of servers instead of an object names its key', () => {
  expect(() => clientText('vscode', 'mcp.json', '{"servers": []}').edited(entry('vscode', stdio))).toThrow(/^servers /)
})

test('B11: other servers are taken out one by one, and ours joins', () => {
  const text = '{\n  // mine\n  "mcpServers": {\n    "a": {}, // one\n    "b": {}\n  },\n  "x": 1\n}\n'
  expect(clientText('cursor', 'mcp.json', text).edited({ command: 'x' }, ['a', 'b'])).toBe(
    '{\n  // mine\n  "mcpServers": {\n    // one\n    "toolway": {\n      "command": "x"\n    }\n  },\n  "x": 1\n}\n',
  )
})
