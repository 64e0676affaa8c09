import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ConfigEdit } from '../contract.ts'
import { readPasted, splitCommandLine } from './pasted-servers.ts'
import { proposeEdit } from './propose-edit.ts'

const read = async (input: string, name?: string) => {
  const found = await readPasted(
    { input, name },
    { env: { HOME: '/home/me' }, cwd: '/home/me/project' },
    '/home/me/project/toolway.yaml',
  )
  return Object.fromEntries(found.map((server) => [server.name, server.definition]))
}

describe('V9: servers are read from pasted text', () => {
  test.each([
    ['npx -y @modelcontextprotocol/server-filesystem@1.2 "/my files"', 'filesystem'],
    ['API_KEY=x uvx mcp-server-git', 'git'],
    ['docker run -i --rm mcp/time:latest', 'time'],
    ['docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server stdio', 'github'],
    ['docker run -itv /srv:/data --name box --network=host --unknown 1 mcp/x@sha256:0a1b -e y', 'x'],
    ['https://mcp.example.com/mcp', 'example'],
    ['```json\n{"mcpServers": {"a": {"command": "x"}}}\n```', 'a'],
    ['```sh\n# start it\nnpx -y weather-mcp\n```', 'weather'],
    ['`npx -y weather-mcp`', 'weather'],
    ['// mcp.json\n/* of\nmine */ {"mcpServers": {"a": {"command": "x"}}}', 'a'],
    ['{"mcpServers": {"a": {"command": "x"}}}', 'a'],
    ['{"servers": {"a": {"type": "http", "url": "https://x.test/mcp"}}}', 'a'],
    ['{"mcp": {"a": {"type": "local", "command": ["x"]}}}', 'a'],
    ['{"context_servers": {"a": {"command": "x"}}}', 'a'],
    ['{"command": "node", "args": ["weather.js"]}', 'weather'],
    ['"a": {"command": "x"},', 'a'],
    ['{"a": {"command": "x"}}', 'a'],
    ['[mcp_servers.a]\ncommand = "x"\n', 'a'],
    ['mcpServers:\n  a:\n    command: x\n', 'a'],
  ])('%s', async (input, name) => {
    expect(Object.keys(await read(input))).toEqual([name])
  })

  test.each([
    ['docker run -i --rm -e API_KEY=sk-proj-abcdefghijklmnop123456 mcp/x', 'x'],
    ['podman run -e TOKEN=hunter2 mcp/x', 'x'],
    ['podman run --env PASSWORD=hunter2', 'podman'],
    ['docker run --token hunter2', 'docker'],
    ['bash -c "TOKEN=hunter2 node x.js"', 'bash'],
    ['uv run --api-key hunter2 weather', 'weather'],
    ['node a8F3kd93kDk29dkW0', 'node'],
    ['{"command": "TOKEN=hunter2 node"}', 'server'],
  ])('B11: a secret never becomes the name of a server: %s', async (input, name) => {
    expect(Object.keys(await read(input))).toEqual([name])
  })

  test('a command line with quotes and variables', async () => {
    expect(await read('A=1 B="2 3" node \'my server.js\' --x="y z"', 'mine')).toEqual({
      mine: { command: 'node', args: ['my server.js', '--x=y z'], env: { A: '1', B: '2 3' } },
    })
    expect(splitCommandLine('a\\ b "c\\"d" \'\'')).toEqual(['a b', 'c"d', ''])
  })

  test.each(['', 'A=1', '"', '{"a": 1}', '{"mcpServers": {}}', '{'])('%s is refused', async (input) => {
    await expect(read(input)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('an invalid name is refused', async () => {
    await expect(read('node x.js', 'a b')).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })
})

/** Proposes edits of a file with this content. */
async function proposals(content: string) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'toolway-add-'))
  const path = join(folder.path, 'toolway.yaml')
  await writeFile(path, content)
  const source = { paths: [path], env: { HOME: folder.path }, cwd: folder.path }
  const request = { source, redacted: { secrets: [], keys: [] }, folder: folder.path, key: 'k' }
  return {
    propose: (edit: ConfigEdit) => proposeEdit({ ...request, edit }),
    [Symbol.asyncDispose]: () => folder.remove(),
  }
}

const weather = { command: 'npx', args: ['-y', 'weather-mcp'] }
const add = (servers: object) => ({ input: JSON.stringify({ mcpServers: servers }) })

describe('V9: what an addition says before it is saved', () => {
  test('the agents that may use the server; those that are chosen are allowed in the same edit', async () => {
    const rules = `mcpServers: {}
agents:
  coder: { allow: { servers: [files], tools: { docs: [read] } } } # mine
  coder.junior: { deny: { servers: [secrets] } }
  coder.intern: { allow: { servers: [files] } }
  admin: { allow: { servers: ["*"] }, deny: { servers: [weather] } }
`
    await using file = await proposals(rules)
    const first = await file.propose({ add: add({ weather }) })
    expect(first).toMatchObject({ added: [{ name: 'weather', agents: [] }], allowable: ['coder', 'admin'] })
    const allowed = await file.propose({ add: add({ weather, docs: { url: 'https://x.test/mcp' } }), allow: ['coder'] })
    expect(allowed.added).toEqual([
      { name: 'weather', agents: ['coder', 'coder.junior'] },
      { name: 'docs', agents: ['coder', 'coder.junior', 'admin'] },
    ])
    expect(allowed.after).toMatch(/servers: \[\s*files,\s*weather,\s*docs\s*\].*# mine/s)
    // A rule that denies the server stays.
    expect((await file.propose({ add: add({ weather }), allow: ['admin'] })).added).toEqual([
      { name: 'weather', agents: [] },
    ])
    for (const agent of ['coder.junior', 'nobody', '__proto__'])
      await expect(file.propose({ add: add({ weather }), allow: [agent] })).rejects.toThrow(`"${agent}"`)
    const form = { changes: [{ path: ['mcpServers', 'secrets'], value: weather, isNew: true }] }
    expect((await file.propose(form)).added).toEqual([{ name: 'secrets', agents: ['admin'] }])
    const other = { changes: [{ path: ['version'], value: 1 }] }
    expect(await file.propose(other)).toMatchObject({ added: [], allowable: [] })
  })

  test('that everybody may use it without rules', async () => {
    await using file = await proposals('mcpServers: {}\n')
    expect(await file.propose({ add: add({ weather }) })).toMatchObject({ added: [{ agents: null }], allowable: [] })
  })

  test('that a command or URL is in the configuration under another name; it is added if somebody wants that', async () => {
    const docs = { url: 'https://x.test/mcp' }
    await using file = await proposals(`mcpServers: ${JSON.stringify({ forecast: weather, docs })}\n`)
    const edit = { add: add({ weather, docs, other: { command: 'x' } }) }
    const first = await file.propose(edit)
    const present = [
      { name: 'weather', as: 'forecast' },
      { name: 'docs-2', as: 'docs' },
    ]
    expect(first.present).toEqual(present)
    expect(first.added.map(({ name }) => name)).toEqual(['other'])
    const both = await file.propose({ ...edit, copies: ['weather', 'docs-2'] })
    expect(both.present).toEqual([])
    expect(both.paths).toEqual(['mcpServers.weather', 'mcpServers.docs-2', 'mcpServers.other'])
  })
})
