import { describe, expect, test } from 'vitest'
import type { ClientKind } from '../config/import/client-kind.ts'
import type { ReadServer, ServerDefinition } from '../config/import/read-servers.ts'
import { adaptServer, type FoundServer, merge } from './import-plan.ts'

const found = (name: string, definition: ServerDefinition, client: ClientKind): FoundServer => ({
  name,
  definition,
  origin: { client, path: `/home/me/${client}`, scope: 'user' },
})

const github = { command: 'npx', args: ['-y', 'server-github'], env: { TOKEN: 'a' } }

describe('B11: servers of several clients become one list', () => {
  test('servers that differ only in the order of keys, timeout or disabled are one', () => {
    const { servers, notes } = merge([
      found('github', { ...github, timeout: '30s', disabled: true }, 'cursor'),
      found('github', { env: { TOKEN: 'a' }, args: ['-y', 'server-github'], command: 'npx', timeout: '5m' }, 'zed'),
      found('gh', { ...github, headers: {}, transport: 'stdio' }, 'codex'),
    ])
    expect(servers).toMatchObject([
      {
        name: 'github',
        definition: { ...github, timeout: '5m' },
        origins: [{ client: 'cursor' }, { client: 'zed' }, { client: 'codex' }],
      },
    ])
    expect(servers[0]?.definition).not.toHaveProperty('disabled')
    expect(notes).toEqual(['gh from Codex is the same server as github'])
  })

  test('another server of the same name is kept under another name, with a note', () => {
    const { servers, notes } = merge([
      found('github', github, 'cursor'),
      found('github', { ...github, env: { TOKEN: 'b' } }, 'zed'),
      found('github', { url: 'https://x/mcp' }, 'zed'),
    ])
    expect(servers.map(({ name }) => name)).toEqual(['github', 'github-zed', 'github-zed-2'])
    expect(notes).toEqual([
      expect.stringMatching(/^Zed .*github, .* github-zed$/),
      expect.stringMatching(/^Zed .*github, .* github-zed-2$/),
    ])
  })

  test('two entries of one file stay two', () => {
    const { servers } = merge([found('a', github, 'cursor'), found('b', github, 'cursor')])
    expect(servers.map(({ name }) => name)).toEqual(['a', 'b'])
  })
})

describe('B11: the folder that a server starts in', () => {
  const server = (definition: ServerDefinition, impliedFolder?: string): ReadServer => ({
    name: 'a',
    definition,
    key: 'mcpServers.a',
    impliedFolder,
    plain: [],
    problems: [],
  })
  const cursor = { client: 'cursor', path: '/home/me/.cursor/mcp.json', scope: 'user' } as const
  const project = { client: 'cursor', path: '/shop/.cursor/mcp.json', scope: 'project' } as const
  const into = '/projects/toolway.yaml'

  test.each([
    ['is carried over where somebody wrote it', server({ command: 'x', cwd: '/there' }), cursor, '/there'],
    [
      'is left out where nobody looks at it',
      server({ command: 'npx', args: ['-y', 'x'] }, '/home/me'),
      cursor,
      undefined,
    ],
    [
      'is carried over where a word depends on it',
      server({ command: 'python', args: ['server.py'] }, '/home/me'),
      cursor,
      '/home/me',
    ],
    ['is carried over from a project', server({ command: 'npx', args: ['-y', 'x'] }, '/shop'), project, '/shop'],
    [
      'goes without saying where it is that of the configuration',
      server({ command: 'x' }, '/projects'),
      project,
      undefined,
    ],
    ['is nothing to a server elsewhere', server({ url: 'https://x' }), project, undefined],
  ])('%s', (_, read, origin, cwd) => {
    expect(adaptServer(read, origin, into).definition.cwd).toBe(cwd)
  })
})
