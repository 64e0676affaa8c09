import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectCaller, type StoryCaller } from '../../fixtures/callers.ts'
import { conversationEntry } from '../../fixtures/conversation/entry.ts'
import { type Era, startConversation } from '../../fixtures/conversation/http.ts'
import { connectTalkers, converseAll, type Talker } from '../../fixtures/conversation/talkers.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const servers = [
  ['legacy', 'HTTP'],
  ['modern', 'HTTP'],
  ['legacy', 'stdio'],
  ['modern', 'stdio'],
] as const satisfies [Era, string][]

// At once, because each has a gateway of its own and waits for its server.
describe.concurrent.each(servers)('one %s server over %s', (era, wire) => {
  const open = new AsyncDisposableStack()
  const talkers: Talker[] = []

  beforeAll(async () => {
    const talks = await conversationEntry(era, wire, open)
    const toolway = open.use(await startToolway({ mcpServers: { talks } }))
    talkers.push(...(await connectTalkers(toolway, ['v1', 'v2', 'modern', 'modern'], open)))
  })
  afterAll(() => open.disposeAsync())

  // A thousand rounds of the same are in tests/deep.
  test.each([
    ['four callers of both eras', 0, 4],
    ['two legacy callers', 0, 2],
    ['two modern callers', 2, 4],
    ['two callers of different eras', 1, 3],
  ])(
    'B2, G3: %s at once get all of their own messages and questions and no others',
    { concurrent: false },
    async (_, from, to) => {
      for (let round = 0; round < 2; round++) {
        await converseAll(talkers.slice(from, to), 'talks__converse', round)
      }
    },
  )
})

test.concurrent('B2, G3: messages that a server sends outside the streams of its calls reach the caller that they are for', async () => {
  await using open = new AsyncDisposableStack()
  const { url } = open.use(await startConversation('legacy', 'aside'))
  const toolway = open.use(await startToolway({ mcpServers: { talks: { url } } }))
  const talkers = await connectTalkers(toolway, ['v1', 'modern', 'v2', 'modern'], open)
  const alone = await connectTalkers(toolway, ['v2'], open)
  await converseAll(alone, 'talks__converse', 0)
  for (let round = 0; round < 2; round++) await converseAll(talkers, 'talks__converse', round)
})

test.concurrent('G3, V3: many windows of one program share one process, and none gets messages of another', async () => {
  await using open = new AsyncDisposableStack()
  const toolway = open.use(
    await startToolway({ mcpServers: { talks: await conversationEntry('legacy', 'stdio', open) } }),
  )
  const talkers = await connectTalkers(
    toolway,
    Array.from({ length: 9 }, () => 'modern' as const),
    open,
  )
  await converseAll(talkers, 'talks__converse', 0)
  // One serves them all, and the server was looked at through another.
  expect(toolway.servers().length).toBeLessThanOrEqual(2)
})

test.concurrent('G3: a resource that a server creates for one caller is listed for that caller only, which is notified', async () => {
  await using open = new AsyncDisposableStack()
  const toolway = open.use(await startToolway({ mcpServers: { everything: stdioServers.everything() } }))
  const answer = () => ({ roots: [] })
  const callers = await Promise.all(
    (['v1', 'v2', 'modern'] as const).map(async (kind) =>
      open.use(await connectCaller(kind, toolway, { name: kind, capabilities: { roots: {} }, answer })),
    ),
  )
  const changed = 'notifications/resources/list_changed'
  const listed = async (caller: StoryCaller) => {
    const { resources } = (await caller.request('resources/list')) as { resources: { name: string }[] }
    return resources.map(({ name }) => name).filter((name) => name.endsWith('.gz'))
  }
  for (const caller of callers) open.use(await caller.follow([]))
  for (const [at, caller] of callers.entries()) {
    const before = caller.told(changed).length
    const data = 'data:text/plain,hi'
    await caller.call('everything__gzip-file-as-resource', { name: `${at}.gz`, data, outputType: 'resourceLink' })
    await until(async () => (await listed(caller)).length > 0, { what: 'the resource' })
    await until(() => caller.told(changed).length > before, { what: 'the notification' })
    expect(await Promise.all(callers.map(listed))).toEqual(callers.map((_, of) => (of <= at ? [`${of}.gz`] : [])))
  }
})
