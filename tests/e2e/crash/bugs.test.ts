import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { alive } from '../../fixtures/processes.ts'
import { until } from '../../fixtures/until.ts'

const secret = 'correct-horse-battery-9'

/** Tools with bugs that leave the call they happen in, and so are nobody's. */
const plugin = `
import { defineTool } from 'toolway'
const tool = (name, handler) => defineTool({ name, description: name, inputSchema: { type: 'object' }, handler })
export const stray = tool('stray', () => {
  void Promise.reject(new Error('rejected and forgotten, with ${secret}'))
  return 'done'
})
export const bug = tool('bug', () => {
  setImmediate(() => { throw new Error('thrown at nobody, with ${secret}') })
  return 'done'
})
`

test('B6, B7: an unhandled rejection is logged and serving continues; an uncaught exception stops the process', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'bugs.mjs')
  await writeFile(file, plugin, { mode: 0o644 })
  await using toolway = await startCommand({ auth: { token: secret }, mcpServers: {}, native: { plugins: [file] } })
  {
    await using client = await connect('v2', { endpoint: toolway })
    for (let count = 0; count < 3; count++) await client.callTool('stray')
    await until(() => toolway.said().includes('rejected and forgotten'), { what: 'the line in the log' })
    expect(JSON.stringify(await client.callTool('hash', { data: 'abc' }))).toContain('ba7816bf')
    await client.callTool('bug').catch(() => {})
  }
  await until(() => !alive(toolway.pid), { what: 'the end of the process' })
  expect(toolway.said()).toContain('thrown at nobody, with [redacted]')
  expect(toolway.said()).not.toContain(secret)
  expect(await fetch(toolway.url).catch(() => 'closed')).toBe('closed')
})
