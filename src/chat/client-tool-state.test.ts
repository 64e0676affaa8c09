import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { ChatMessage, FunctionCall } from '../core/chat.ts'
import type { TtlStore } from '../core/stores.ts'
import { createSeal } from '../lib/seal.ts'
import { memoryTtlStore } from '../stores/ttl-store.ts'
import { user } from '../tools/access.fixture.ts'
import { handoversIn } from './chat.fixture.ts'
import { ClientToolState } from './client-tool-state.ts'

const theirs: FunctionCall = { id: 'theirs', type: 'function', function: { name: 'paint', arguments: '{}' } }
const own: readonly ChatMessage[] = [{ role: 'assistant', content: 'secret', tool_calls: [theirs] }]

/** What a client sends that has run what it was handed. */
const comeBack = (handed: readonly FunctionCall[]): readonly ChatMessage[] => [
  { role: 'assistant', content: null, tool_calls: handed },
  ...handed.map(({ id }): ChatMessage => ({ role: 'tool', tool_call_id: id, content: 'x' })),
]
const restored = [...own, { role: 'tool', tool_call_id: 'theirs', content: 'x' }]

test('B6: another caller cannot restore the state, even with its id', async () => {
  const clientToolState = handoversIn(memoryTtlStore(createManualClock()))
  const back = comeBack(await clientToolState.keep(user, own, [theirs]))
  expect(await clientToolState.restore({ ...user, principal: 'other' }, back)).toEqual(back)
  expect(await clientToolState.restore({ ...user, agent: 'other' }, back)).toEqual(back)
  expect(await clientToolState.restore(user, back)).toEqual(restored)
})

test('B10: a client that returns to another replica finds its conversation', async () => {
  const shared = memoryTtlStore(createManualClock())
  const [one, other] = [handoversIn(shared), handoversIn(shared)]
  const handed = await one.keep(user, own, [theirs, { ...theirs, id: 'more' }])
  expect(await other.restore(user, comeBack(handed))).toHaveLength(3)
  // In whatever order it tells of its calls.
  expect(await other.restore(user, comeBack(handed.toReversed()))).toHaveLength(3)
})

test('B6: the stored state is encrypted and authenticated', async () => {
  const texts = new Map<string, string>()
  const open: TtlStore = { set: (key, text) => void texts.set(key, text), get: (key) => texts.get(key) }
  const clientToolState = handoversIn(open)
  const [first, second] = [
    await clientToolState.keep(user, own, [theirs]),
    await clientToolState.keep(user, own, [theirs]),
  ]
  expect(JSON.stringify([...texts])).not.toMatch(/secret|paint|assistant/)
  const [one = '', two = ''] = texts.keys()
  texts.set(one, texts.get(two) ?? '')
  expect(await clientToolState.restore(user, comeBack(first))).toEqual(comeBack(first))
  expect(await clientToolState.restore(user, comeBack(second))).toEqual(restored)
  const strangers = new ClientToolState(open, createSeal('another secret'))
  expect(await strangers.restore(user, comeBack(second))).toEqual(comeBack(second))
})

test('B10: without state the conversation is still valid; foreign ids are not looked up', async () => {
  const asked: string[] = []
  const away: TtlStore = {
    set() {},
    get(key) {
      asked.push(key)
      return undefined
    },
  }
  const clientToolState = handoversIn(away)
  const back = comeBack(await clientToolState.keep(user, own, [theirs]))
  expect(await clientToolState.restore(user, back)).toEqual(back)
  expect(asked).toHaveLength(1)
  expect(await clientToolState.restore(user, comeBack([theirs]))).toEqual(comeBack([theirs]))
  expect(asked).toHaveLength(1)
})

test('J5: the state is kept for an hour after its last use', async () => {
  const clock = createManualClock()
  const clientToolState = handoversIn(memoryTtlStore(clock))
  const handed = await clientToolState.keep(user, own, [theirs])
  const isKept = async () => (await clientToolState.restore(user, comeBack(handed)))[0]?.content === 'secret'
  clock.advance(3_599_000)
  expect(await isKept()).toBe(true)
  clock.advance(3_599_000)
  expect(await isKept()).toBe(true)
  clock.advance(3_600_000)
  expect(await isKept()).toBe(false)
})
