import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { Generations } from '../runtime/generations.ts'
import { requestOf } from './chat.fixture.ts'
import { reloadableChat } from './reloadable-chat.ts'

test('G8: an answer ends with the configuration it started with, which stays open', async () => {
  const closed: string[] = []
  const clock = createManualClock()
  const chat = (name: string) => ({
    name,
    models: () => [name],
    visionModels: () => [],
    async *answer() {
      yield { kind: 'text', text: `${name} begins` } as const
      yield { kind: 'text', text: closed.includes(name) ? 'too late' : `${name} ends` } as const
    },
  })
  const generations = new Generations<ReturnType<typeof chat>>({
    clock,
    dispose: async ({ name }) => void closed.push(name),
  })
  generations.replace(chat('old'))
  const changing = reloadableChat(
    () => generations.current,
    (work) => generations.run(work),
  )
  const texts: unknown[] = []
  for await (const event of changing.answer(requestOf('x'))) {
    texts.push('text' in event && event.text)
    if (texts.length === 1) {
      generations.replace(chat('new'))
      await clock.pass(60_000)
    }
  }
  expect(texts).toEqual(['old begins', 'old ends'])
  expect(changing.models()).toEqual(['new'])
  await clock.pass(60_000)
  expect(closed).toEqual(['old'])
  for await (const event of changing.answer(requestOf('x')))
    expect(event).toMatchObject({ text: expect.stringMatching(/^new/) })
})
