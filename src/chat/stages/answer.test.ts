import { expect, test } from 'vitest'
import type { ChatEvent } from '../../core/chat.ts'
import type { ChatRun } from '../chat-run.ts'
import { beginsLikeCalls } from '../parse-answer.ts'
import { streamModelAnswer } from './answer.ts'

const run = (pieces: readonly string[]) =>
  ({
    request: {},
    signal: new AbortController().signal,
    async *ask() {
      for (const text of pieces) yield { kind: 'text', text }
    },
  }) as unknown as ChatRun

async function spoken(pieces: readonly string[]) {
  const told: ChatEvent[] = []
  const speech = streamModelAnswer(run(pieces), { messages: [] }, { holds: beginsLikeCalls, before: '\n\n' })
  for (let next = await speech.next(); ; next = await speech.next()) {
    if (next.done) return { told, text: next.value.text, held: next.value.held }
    told.push(next.value)
  }
}

test('S6: text that starts like calls is held back; other text is streamed after its separator', async () => {
  const text = (text: string) => ({ kind: 'text', text })
  expect(await spoken([' ', 'Yes', '{', ' '])).toEqual({
    told: [text('\n\n Yes'), text('{'), text(' ')],
    text: ' Yes{ ',
    held: '',
  })
  expect(await spoken([' ', ' {', 'a'])).toEqual({ told: [], text: '  {a', held: '  {a' })
  expect(await spoken([' ', '\n'])).toEqual({ told: [], text: ' \n', held: '' })
})

test.each([
  ['words', 'x'],
  ['what is kept back', '{'],
  ['spaces', ' '],
])('security: an endless stream of %s costs no more for each piece than its beginning', async (_what, character) => {
  const { text } = await spoken(Array(40_000).fill(character.repeat(60)))
  expect(text).toHaveLength(2_400_000)
})
