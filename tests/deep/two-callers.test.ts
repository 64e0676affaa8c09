import { expect, test } from 'vitest'
import type { CallerKind } from '../fixtures/callers.ts'
import { conversationEntry } from '../fixtures/conversation/entry.ts'
import type { Era } from '../fixtures/conversation/http.ts'
import { connectTalkers, converseAll } from '../fixtures/conversation/talkers.ts'
import { startToolway } from '../fixtures/toolway.ts'

const rounds = 1_000

const cells: [string, CallerKind[], Era, string][] = (['legacy', 'modern'] as const).flatMap((era) =>
  ['HTTP', 'stdio'].flatMap((wire): [string, CallerKind[], Era, string][] => [
    ['two legacy callers', ['v1', 'v2'], era, wire],
    ['two modern callers', ['modern', 'modern'], era, wire],
    ['callers of both eras', ['v2', 'modern'], era, wire],
  ]),
)

test.each(cells)(
  `B2, G3: %s (%j) on one %s server over %s: ${rounds} interleaved rounds, none crossed, none lost`,
  async (_, kinds, era, wire) => {
    await using open = new AsyncDisposableStack()
    const talks = await conversationEntry(era, wire, open)
    const toolway = open.use(await startToolway({ mcpServers: { talks } }))
    const talkers = await connectTalkers(toolway, kinds, open)
    for (let round = 1; round <= rounds; round++) await converseAll(talkers, 'talks__converse', round)
    // One for each caller, and one through which the server was looked at first.
    expect(toolway.servers().length).toBeLessThanOrEqual(wire === 'stdio' ? kinds.length + 1 : 0)
  },
)
