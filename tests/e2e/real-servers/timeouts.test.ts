import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CallerKind, connectCaller } from '../../fixtures/callers.ts'
import { startEverything, stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

const open = new AsyncDisposableStack()
let toolway: LocalToolway

beforeAll(async () => {
  const remote = open.use(await startEverything('streamableHttp'))
  const longest = { toolTimeouts: { 'trigger-long-running-operation': '2s' } }
  toolway = open.use(
    await startToolway({
      mcpServers: {
        local: { ...stdioServers.everything(), ...longest },
        remote: { url: remote.url, ...longest },
        bounded: { ...stdioServers.everything(), ...longest, maxTimeout: '3s' },
      },
      // Cold servers on a busy machine must not end a call that is about something else.
      defaults: { timeout: '1m' },
    }),
  )
  const client = open.use(await connectCaller('v1', toolway))
  for (const server of ['local', 'remote', 'bounded']) await client.call(`${server}__echo`, { message: 'awake' })
})

afterAll(() => open.disposeAsync())

const tool = 'trigger-long-running-operation'
const errorOf = (result: Record<string, unknown>) => ({
  ...((result._meta as Record<string, object> | undefined)?.['dev.toolway/error'] as { code?: string } | undefined),
  text: (result.content as { text: string }[])[0]?.text ?? '',
})

// At once, because each waits for seconds.
test.concurrent.each([
  ['local', 'v1'],
  ['remote', 'v1'],
  ['local', 'modern'],
  ['remote', 'modern'],
] as [string, CallerKind][])(
  'V4: a long tool of %s that reports progress outlives its timeout, for a %s caller that asked for none',
  async (server, kind) => {
    await using client = await connectCaller(kind, toolway)
    const result = await client.call(`${server}__${tool}`, { duration: 4, steps: 8 })
    expect(errorOf(result)).toEqual({ text: expect.stringContaining('completed') })
    expect(client.told('notifications/progress')).toEqual([])
  },
)

test.concurrent('V4: without progress in time the error names the setting and its value', async () => {
  await using client = await connectCaller('v1', toolway)
  const result = await client.call(`local__${tool}`, { duration: 30, steps: 1 })
  expect(errorOf(result)).toMatchObject({
    code: 'TIMEOUT',
    text: expect.stringContaining(`2 s (mcpServers.local.toolTimeouts.${tool})`),
  })
})

test.concurrent('V4: progress does not carry a call beyond the maximum, which the error names', async () => {
  await using client = await connectCaller('modern', toolway)
  const result = await client.call(`bounded__${tool}`, { duration: 30, steps: 100 })
  expect(errorOf(result)).toMatchObject({
    code: 'TIMEOUT',
    text: expect.stringContaining('3 s (mcpServers.bounded.maxTimeout)'),
  })
})

test.concurrent('V4: a limit that the caller names holds, whatever progress there is', async () => {
  await using client = await connectCaller('v1', toolway)
  const asked = { server: 'local', tool, args: { duration: 30, steps: 100 }, timeout_ms: 1_500 }
  const result = await client.call('execute_tool', asked)
  expect(errorOf(result)).toMatchObject({ code: 'TIMEOUT', text: expect.stringContaining('timeout_ms') })
})
