import { expect, test } from 'vitest'
import type { ServerDefinition } from '../config/import/read-servers.ts'
import { planImport } from './import-plan.ts'

const planned = (servers: Readonly<Record<string, ServerDefinition>>) =>
  planImport(
    Object.entries(servers).map(([name, definition]) => ({
      ...{ name, definition },
      origin: { client: 'cursor', path: '/home/me/.cursor/mcp.json', scope: 'user' },
    })),
    {
      known: new Map(),
      find: () => [],
      keep: () => Promise.reject(new Error('no secrets here')),
      missing: () => [],
      resolve: (one) => one,
    },
  )

test('V3: an imported server that keeps state gets a process for each caller, unless its entry says otherwise', async () => {
  const browser = { command: 'npx', args: ['-y', '@playwright/mcp@latest'] }
  const { added, notes } = await planned({
    browser,
    common: { ...browser, session: 'shared' },
    files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/me'] },
  })
  expect(added.map(({ name, definition }) => [name, definition.session])).toEqual([
    ['browser', 'caller'],
    ['common', 'shared'],
    ['files', undefined],
  ])
  expect(notes).toEqual([expect.stringContaining('mcpServers.browser')])
})
