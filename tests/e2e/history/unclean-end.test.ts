import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { until } from '../../fixtures/until.ts'
import { asking, originOf } from '../admin/people.ts'

const config = {
  history: {},
  mcpServers: { probe: { ...stdioServers.probe(), capture: true }, everything: stdioServers.everything() },
}

test('V11, V7: after kill -9, captured calls are there, and one inbox item names the calls without an outcome', async () => {
  await using folder = await temporaryFolder()
  await using first = await startCommand(config, { folder })
  await using client = await connect('v2', { endpoint: first })
  await client.callTool('probe__echo', { message: 'captured text' })
  const ask = asking(originOf(first), first.token)
  const [{ id }] = (await ask('calls')).json.calls
  void client.callTool('everything__trigger-long-running-operation', { duration: 60, steps: 2 }).catch(() => {})
  await until(async () => (await ask('calls?outcome=running')).json.calls.length === 1, { what: 'a running call' })
  const running = (await ask('calls?outcome=running')).json.calls[0].id
  // The batch with the captured call.
  expect((await ask('stats?by=tool')).json.rows).toHaveLength(1)
  await first.stop('SIGKILL')

  await using second = await startCommand(config, { folder })
  const askAgain = asking(originOf(second), second.token)
  const detail = (await askAgain(`calls/${id}`)).json
  expect(detail.captured?.arguments.text).toBe('{"message":"captured text"}')
  expect(detail.captured.result.text).toContain('captured text')
  expect(detail.rerun).toMatchObject({ possible: true })
  const files = ['', '-wal'].map((end) => readFileSync(join(folder.path, `state/history.sqlite${end}`), 'latin1'))
  expect(files.join('')).not.toContain('captured text')
  const items = async () =>
    (await askAgain('inbox')).json.items.filter((item: { id: string }) => item.id === 'audit:unclean')
  await until(async () => (await items()).length === 1, { what: 'the inbox item' })
  const [item] = await items()
  expect(item).toMatchObject({ title: expect.stringMatching(/without shutting down, at \d{4}-/), severity: 'warning' })
  expect(item.detail).toContain(`everything.trigger-long-running-operation by`)
  expect(item.detail).toContain(running)
  expect(item.detail).not.toContain(id)

  await second.stop('SIGTERM')
  await using third = await startCommand(config, { folder })
  expect(JSON.stringify((await asking(originOf(third), third.token)('inbox')).json)).not.toContain('audit:unclean')
})
