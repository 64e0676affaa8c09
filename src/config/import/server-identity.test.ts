import { expect, test } from 'vitest'
import { project } from '../project.fixture.ts'
import { keepsState } from './server-identity.ts'

test.each([
  [{ command: 'npx', args: ['-y', '@playwright/mcp@latest', '--headless'] }, true],
  [{ command: 'npx', args: ['@modelcontextprotocol/server-memory'] }, true],
  [{ command: 'npx', args: ['--package=@modelcontextprotocol/server-sequential-thinking@2025.7.1', 'x'] }, true],
  [{ command: 'docker', args: ['run', '-i', '--rm', 'mcp/puppeteer:1.0'] }, true],
  [{ command: 'uvx', args: ['jupyter-mcp-server==1.2'] }, true],
  [{ command: 'node', args: ['/usr/lib/node_modules/chrome-devtools-mcp/build/src/index.js'] }, true],
  [{ command: '/opt/bin/mcp-server-playwright' }, true],
  [{ command: 'C:\\tools\\mcp-server-playwright.cmd' }, true],
  [{ command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/me/memory'] }, false],
  [{ command: 'npx', args: ['my-playwright-notes'] }, false],
  [{ url: 'https://example.com/mcp' }, false],
])('V3: %j keeps state for its callers: %s', (definition, expected) => {
  expect(keepsState(definition)).toBe(expected)
})

test("V3: a stateful server of a client's file gets a process for each caller, unless the file says otherwise", async () => {
  const browser = { command: 'npx', args: ['@playwright/mcp@latest'] }
  const servers = { browser, common: { ...browser, session: 'shared' }, files: { command: 'npx', args: ['fs'] } }
  const place = await project({ 'home/.cursor/mcp.json': JSON.stringify({ mcpServers: servers }) })
  const { config, notes } = await place.load({ paths: ['home/.cursor/mcp.json'] })
  const sessions = Object.entries(config.mcpServers).map(([name, { session }]) => [name, session])
  expect(sessions).toEqual([
    ['browser', 'caller'],
    ['common', 'shared'],
    ['files', 'shared'],
  ])
  expect(notes.filter((note) => note.includes('session: caller'))).toEqual([expect.stringContaining('browser')])
})
