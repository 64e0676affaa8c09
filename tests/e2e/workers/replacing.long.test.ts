import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { startCommand } from '../../fixtures/command.ts'
import { stdioServers } from '../../fixtures/servers.ts'

test('B10: workers are replaced one after another without a failed call, and end with the primary process', async () => {
  await using open = new AsyncDisposableStack()
  const mcpServers = { everything: stdioServers.everything() }
  const toolway = open.use(await startCommand({ mcpServers }, { words: ['--workers', '2'] }))
  // They keep their connections open, so the old workers must make them connect to the new ones.
  const callers = await Promise.all(
    (['v1', 'v2'] as const).map(async (sdk) => open.use(await connect(sdk, { endpoint: toolway }))),
  )
  const before = toolway.children()
  process.kill(toolway.pid, 'SIGUSR2')
  const replaced = () => toolway.said().includes('all workers replaced')
  const failed: unknown[] = []
  const callOn = async (call: () => Promise<{ isError?: boolean }>) => {
    while (!replaced()) {
      const { isError } = await call().catch((error: unknown) => ({ isError: error }))
      if (isError) failed.push(isError)
      await pause(5)
    }
  }
  const work = { duration: 0.2, steps: 2 }
  await Promise.all(
    callers.flatMap((caller) => [
      callOn(() => caller.callTool('time', { name: 'get_time_utc' })),
      callOn(() => caller.callTool('everything__trigger-long-running-operation', work, { onprogress() {} })),
    ]),
  )
  expect(failed).toEqual([])
  expect(toolway.children().filter((pid) => before.includes(pid))).toEqual([])
  expect((await toolway.stop('SIGKILL', 10_000)).survivors).toEqual([])
})
