import { expect, test } from 'vitest'
import { brief, project } from '../project.fixture.ts'

test('a plain mcpServers file of any client is a complete configuration', async () => {
  const { load, at } = await project({
    '.mcp.json': `{
  // as Claude Code, Cursor and Cline write it
  "mcpServers": {
    "local": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "\${A:-b}"}, "disabled": false},
    "remote": {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer \${T:-t}"}},
    "older": {"transport": "sse", "url": "https://x.example/events"},
    "awslabs.aws-docs": {"command": "uvx", "args": [], "enabled": false},
  },
}`,
  })
  const { config, files, notes, warnings } = await load()
  expect(files).toEqual([{ path: at('.mcp.json'), dialect: 'mcpServers' }])
  expect(notes).toEqual([`${at('.mcp.json')}: read as a plain mcpServers file: 4 servers`])
  expect(warnings).toEqual([])
  expect(config.mcpServers).toMatchObject({
    local: { transport: 'stdio', command: 'npx', env: { A: 'b' }, disabled: false, session: 'shared' },
    remote: { transport: 'http', headers: { Authorization: 'Bearer t' } },
    older: { transport: 'sse' },
    'awslabs.aws-docs': { transport: 'stdio', disabled: true },
  })
})

test.each(['http', 'streamable-http', 'streamableHttp', 'streamable_http'])(
  'the transport %s is http, under any of its names',
  async (transport) => {
    for (const key of ['transport', 'type', 'transportType']) {
      const server = { url: 'http://x/sse', [key]: transport }
      const { load } = await project({ 'toolway.json': JSON.stringify({ mcpServers: { a: server } }) })
      expect((await load()).config.mcpServers.a?.transport).toBe('http')
    }
  },
)

test('other spellings of url and of the lists of tools are understood', async () => {
  const { load } = await project({
    'toolway.yaml': `
mcpServers:
  a: { httpUrl: "http://x/sse", includeTools: [one], excludeTools: [two] }
  b: { serverUrl: "http://x/sse" }
`,
  })
  const { mcpServers } = (await load()).config
  expect(mcpServers.a).toMatchObject({
    transport: 'http',
    url: 'http://x/sse',
    tools: { include: ['one'], exclude: ['two'] },
  })
  expect(mcpServers.b).toMatchObject({ transport: 'sse' })
})

test('keys of a client that have no effect are ignored with a reason', async () => {
  const { load } = await project({
    'toolway.json': '{"mcpServers": {"a": {"command": "x", "alwaysAllow": ["y"], "autoApprove": [], "trust": true}}}',
  })
  const { warnings } = await load()
  expect(warnings).toEqual(
    ['alwaysAllow', 'autoApprove', 'trust'].map((key) =>
      expect.stringMatching(new RegExp(`^mcpServers\\.a\\.${key} has no effect: .* under approve\\b`)),
    ),
  )
})

test('two spellings that contradict each other are refused at the second one', async () => {
  const { problems, load } = await project({
    'bad.yaml': 'mcpServers:\n  a:\n    url: http://x\n    transport: sse\n    type: http\n',
    'good.yaml': 'mcpServers: { a: { url: "http://x", transport: http, type: streamable-http } }',
  })
  expect(brief(await problems({ paths: ['bad.yaml'] }))).toEqual([
    '5:5 mcpServers.a.type: contradicts transport; keep one of them',
  ])
  expect((await load({ paths: ['good.yaml'] })).config.mcpServers.a?.transport).toBe('http')
})

test('an error about another spelling points at that spelling', async () => {
  const { problems } = await project({ 'toolway.json': '{"mcpServers": {"a": {"url": "http://x",\n "type": "htpp"}}}' })
  expect(brief(await problems())).toEqual([
    '2:2 mcpServers.a.transport: expected one of stdio, http, sse, found "htpp"; did you mean http? (written as mcpServers.a.type)',
  ])
})

test("an editor's mcp.json is read, with its inputs from variables", async () => {
  const servers = { a: { type: 'http', url: 'https://x/mcp' }, b: { command: 'x', env: { K: '${input:key}' } } }
  const { load, problems } = await project({
    'good.json': JSON.stringify({ servers, inputs: [{ id: 'key' }] }),
    'bad.json': JSON.stringify({ servers, inputs: [], sevrers: {} }),
  })
  const { config, files, notes, warnings } = await load({ paths: ['good.json'], env: { INPUT_KEY: 'k' } })
  expect(config.mcpServers).toMatchObject({ a: { transport: 'http' }, b: { env: { K: 'k' } } })
  expect(files[0]?.dialect).toBe('vscode')
  expect(notes.some((note) => note.endsWith("read as an editor's mcp.json: 2 servers"))).toBe(true)
  expect(warnings).toEqual([])
  expect((await problems({ paths: ['bad.json'] })).map(({ key }) => key)).toEqual(['mcpServers.b.env.K', 'sevrers'])
})
