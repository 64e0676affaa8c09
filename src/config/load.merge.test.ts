import { expect, test } from 'vitest'
import { brief, project } from './project.fixture.ts'

const base = `
server: { port: 5000, allowedHosts: [a.example, b.example] }
mcpServers:
  files: { command: npx, args: [one], env: { A: "1", B: "2" }, timeout: 10s }
  other: { url: "http://127.0.0.1:1/mcp" }
`

test('several files merge: objects deep, lists as a whole, later ones win', async () => {
  const { load, at } = await project({
    'base.yaml': base,
    'over.json':
      '{"server": {"allowedHosts": ["c.example"]}, "mcpServers": {"files": {"args": ["two"], "env": {"B": "3"}}}}',
  })
  const { config, files } = await load({ paths: ['base.yaml', 'over.json'] })
  expect(config.server).toMatchObject({ port: 5000, allowedHosts: ['c.example'] })
  expect(config.mcpServers.files).toMatchObject({
    command: 'npx',
    args: ['two'],
    env: { A: '1', B: '3' },
    timeout: 10_000,
  })
  expect(Object.keys(config.mcpServers)).toEqual(['files', 'other'])
  expect(files.map(({ path }) => path)).toEqual([at('base.yaml'), at('over.json')])
})

test('the order decides', async () => {
  const { load } = await project({ 'a.yaml': 'server: { port: 1 }', 'b.yaml': 'server: { port: 2 }' })
  expect((await load({ paths: ['a.yaml', 'b.yaml'] })).config.server.port).toBe(2)
  expect((await load({ paths: ['b.yaml', 'a.yaml'] })).config.server.port).toBe(1)
})

test('null takes away what an earlier file said, so that a command can become a url', async () => {
  const { load } = await project({
    'base.yaml': base,
    'over.yaml': 'server: { port: null }\nmcpServers: { files: { command: null, url: "http://127.0.0.1:2/mcp" } }',
  })
  const { config } = await load({ paths: ['base.yaml', 'over.yaml'] })
  expect(config.server.port).toBe(4322)
  expect(config.mcpServers.files).toMatchObject({ transport: 'http', url: 'http://127.0.0.1:2/mcp' })
})

test('each error names the file that the key came from', async () => {
  const { problems, at } = await project({
    'base.yaml': 'server:\n  port: 5000\n  maxBody: huge\n',
    'over.toml': '[server]\nport = 99999\n',
  })
  const found = await problems({ paths: ['base.yaml', 'over.toml'] })
  expect(found.map(({ file, line, key }) => [file, line, key])).toEqual([
    [at('over.toml'), 2, 'server.port'],
    [at('base.yaml'), 3, 'server.maxBody'],
  ])
})

test('a later file that disables a server frees its variables', async () => {
  const { load } = await project({
    'base.yaml': 'mcpServers: { a: { command: x, env: { T: "${UNSET}" } } }',
    'over.yaml': 'mcpServers: { a: { disabled: true } }',
  })
  expect((await load({ paths: ['base.yaml', 'over.yaml'] })).config.mcpServers.a?.disabled).toBe(true)
})

test('a canonical key in a later file wins over an alias in an earlier one', async () => {
  const { load } = await project({
    'base.json': '{"mcpServers": {"a": {"url": "http://x/mcp", "type": "sse", "enabled": false}}}',
    'over.yaml': 'mcpServers: { a: { transport: http, disabled: false } }',
  })
  const { config } = await load({ paths: ['base.json', 'over.yaml'] })
  expect(config.mcpServers.a).toMatchObject({ transport: 'http', disabled: false })
})

test('problems of all files are reported together, syntax errors too', async () => {
  const { problems } = await project({ 'a.yaml': 'a: [1', 'b.json': '{"a" 1}' })
  expect(brief(await problems({ paths: ['a.yaml', 'b.json', 'c.yaml'] }))).toEqual([
    expect.stringContaining('not valid YAML'),
    '1:6 : not valid JSON: a colon is expected here',
    'undefined:undefined : no such file',
  ])
})
