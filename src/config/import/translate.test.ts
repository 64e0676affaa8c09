import { expect, test } from 'vitest'
import { brief, project } from '../project.fixture.ts'

const entry = '{ "url": "http://127.0.0.1:4322/mcp", "headers": { "Authorization": "Bearer ${env:TOOLWAY_TOKEN}" } }'

test("an editor's file that points at us already is read without us, and without our variables", async () => {
  const { load } = await project({
    'cursor.json': `{ "mcpServers": { "files": { "command": "x" }, "toolway": ${entry} } }`,
    'vscode.json': `{ "servers": { "files": { "command": "x" }, "toolway": ${entry} } }`,
  })
  for (const path of ['cursor.json', 'vscode.json']) {
    const { config, notes } = await load({ paths: [path] })
    expect(Object.keys(config.mcpServers)).toEqual(['files'])
    expect(notes.join()).toContain('the server toolway is Toolway itself and was ignored')
  }
})

test('in a configuration of Toolway the name is refused', async () => {
  const { problems } = await project({ 'toolway.yaml': 'version: 1\nmcpServers: { toolway: { command: x } }' })
  expect(brief(await problems())).toEqual([expect.stringContaining('mcpServers.toolway')])
})

test('one token for all configurations of a user, unless a configuration keeps its state to itself', async () => {
  const { load, at } = await project({ 'a.yaml': 'version: 1', 'b.yaml': 'stores: { path: data }' })
  expect((await load({ paths: ['a.yaml'] })).config.stores.common).toBe(at('home', '.local', 'state', 'toolway'))
  expect((await load({ paths: ['b.yaml'] })).config.stores.common).toBe(at('data'))
})

test('a gateway that others can use without a credential, because the operator says so, is worth a warning', async () => {
  const { load } = await project({
    'a.yaml': 'auth: { token: none }\nserver: { host: 0.0.0.0, allowUnauthenticated: true }',
  })
  expect((await load({ paths: ['a.yaml'] })).warnings.join()).toContain('may use every tool')
})
