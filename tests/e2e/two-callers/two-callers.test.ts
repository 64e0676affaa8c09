import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { conversationEntry } from '../../fixtures/conversation/entry.ts'
import { type Era, startConversation } from '../../fixtures/conversation/http.ts'
import { connectTalkers, converseAll, type Talker } from '../../fixtures/conversation/talkers.ts'
import { startToolway } from '../../fixtures/toolway.ts'

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
    'B2, G3: %s at once hear and are asked what is their own, all of it and nothing else',
    { concurrent: false },
    async (_, from, to) => {
      for (let round = 0; round < 2; round++) {
        await converseAll(talkers.slice(from, to), 'talks__converse', round)
      }
    },
  )
})

test.concurrent('B2, G3: a server that speaks outside the streams of its calls reaches the caller that it means', async () => {
  await using open = new AsyncDisposableStack()
  const { url } = open.use(await startConversation('legacy', 'aside'))
  const toolway = open.use(await startToolway({ mcpServers: { talks: { url } } }))
  const talkers = await connectTalkers(toolway, ['v1', 'modern', 'v2', 'modern'], open)
  const alone = await connectTalkers(toolway, ['v2'], open)
  await converseAll(alone, 'talks__converse', 0)
  for (let round = 0; round < 2; round++) await converseAll(talkers, 'talks__converse', round)
})

test.concurrent('G3, V3: many windows of one program share one process, and none hears another', async () => {
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
