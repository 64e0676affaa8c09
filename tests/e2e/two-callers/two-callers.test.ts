import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { CallerKind } from '../../fixtures/callers.ts'
import { type Era, startConversation } from '../../fixtures/conversation/http.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { connectTalker, createMeeting, expected, talk } from './talk.ts'

const rounds = 25
const program = fileURLToPath(new URL('../../fixtures/conversation/program.ts', import.meta.url))

const companies: Record<string, CallerKind[]> = {
  'two legacy callers': ['v1', 'v2'],
  'two modern callers': ['modern', 'modern'],
  'four callers of both eras': ['v1', 'modern', 'v2', 'modern'],
}

const servers = [
  ['legacy', 'HTTP'],
  ['modern', 'HTTP'],
  ['legacy', 'stdio'],
  ['modern', 'stdio'],
] as const satisfies [Era, string][]

async function serverEntry(era: Era, wire: string, open: AsyncDisposableStack) {
  if (wire === 'stdio') return { command: process.execPath, args: [program, era] }
  return { url: open.use(await startConversation(era)).url }
}

describe.each(servers)('one %s server over %s', (era, wire) => {
  test.each(Object.entries(companies))(
    'B2, G3: %s at once hear and are asked what is their own, all of it and nothing else',
    async (_, kinds) => {
      await using open = new AsyncDisposableStack()
      const server = await serverEntry(era, wire, open)
      const toolway = open.use(await startToolway({ mcpServers: { talks: server } }))
      const meeting = createMeeting(kinds.length)
      const talkers = await Promise.all(
        kinds.map((kind, index) => connectTalker(toolway, { name: `${kind}-${index}`, kind, meeting })),
      )
      for (const talker of talkers) open.use(talker)
      for (let round = 0; round < rounds; round++) {
        const outcomes = await Promise.all(
          talkers.map((talker) => talk(talker, 'talks__converse', `${talker.name}#${round}`)),
        )
        expect(outcomes).toEqual(talkers.map(({ name }) => expected(name, `${name}#${round}`)))
      }
    },
  )
})
