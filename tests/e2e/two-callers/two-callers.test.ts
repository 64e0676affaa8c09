import { describe, expect, test } from 'vitest'
import type { CallerKind } from '../../fixtures/callers.ts'
import { conversationEntry } from '../../fixtures/conversation/entry.ts'
import { type Era, startConversation } from '../../fixtures/conversation/http.ts'
import { connectTalkers, converseAll } from '../../fixtures/conversation/talkers.ts'
import { startToolway } from '../../fixtures/toolway.ts'

/** With how many conversations each of them has; tests/deep has a thousand. */
const companies: [string, CallerKind[], number][] = [
  ['two legacy callers', ['v1', 'v2'], 25],
  ['two modern callers', ['modern', 'modern'], 25],
  ['four callers of both eras', ['v1', 'modern', 'v2', 'modern'], 8],
]

const servers = [
  ['legacy', 'HTTP'],
  ['modern', 'HTTP'],
  ['legacy', 'stdio'],
  ['modern', 'stdio'],
] as const satisfies [Era, string][]

describe.concurrent.each(servers)('one %s server over %s', (era, wire) => {
  test.each(companies)(
    'B2, G3: %s at once hear and are asked what is their own, all of it and nothing else',
    async (_, kinds, rounds) => {
      await using open = new AsyncDisposableStack()
      const server = await conversationEntry(era, wire, open)
      const toolway = open.use(await startToolway({ mcpServers: { talks: server } }))
      const talkers = await connectTalkers(toolway, kinds, open)
      for (let round = 0; round < rounds; round++) await converseAll(talkers, 'talks__converse', round)
    },
  )
})

test('B2, G3: a server that speaks beside its calls, so that nothing tells whom it means, is told apart by itself', async () => {
  await using open = new AsyncDisposableStack()
  const { url } = open.use(await startConversation('legacy', 'aside'))
  const toolway = open.use(await startToolway({ mcpServers: { talks: { url } } }))
  const talkers = await connectTalkers(toolway, ['v1', 'modern', 'v2', 'modern'], open)
  const alone = await connectTalkers(toolway, ['v2'], open)
  await converseAll(alone, 'talks__converse', 0)
  expect(toolway.log.lines.map(({ message }) => message)).toContainEqual(expect.stringContaining('its own line now'))
  for (let round = 0; round < 25; round++) await converseAll(talkers, 'talks__converse', round)
})

test('G3: more calls at once of one program than lines are kept for it, and none hears another', async () => {
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
})
