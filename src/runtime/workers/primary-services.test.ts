import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createWorkerRegistry } from './ipc-stores.ts'

const registryOf = (most?: number) => {
  const clock = createManualClock()
  const registry = createWorkerRegistry(clock, most === undefined ? {} : { max: most })
  for (const name of ['a', 'b', 'c']) registry.join({ name, address: `http://${name}` })
  return { clock, registry }
}

test('B10: a session belongs to one worker while that is running', () => {
  const { registry } = registryOf()
  registry.keep('a', 'a.1', 'what a knew')
  expect(registry.takeOver('b', 'a.1', '')).toEqual({ heldBy: 'a', address: 'http://a' })
  expect(registry.takeOver('b', 'a.2', '')).toBeUndefined()
})

test('B10: the first worker that asks takes over the session of one that has exited', () => {
  const { registry } = registryOf()
  registry.keep('a', 'a.1', 'what a knew')
  registry.leave('a')
  expect(registry.takeOver('b', 'a.1', '')).toEqual({ record: 'what a knew' })
  expect(registry.takeOver('c', 'a.1', '')).toEqual({ heldBy: 'b', address: 'http://b' })
  expect(registry.members().map(({ name }) => name)).toEqual(['b', 'c'])
})

test('B10: an unreachable worker counts as exited', () => {
  const { registry } = registryOf()
  registry.keep('a', 'a.1', 'what a knew')
  expect(registry.takeOver('b', 'a.1', 'a')).toEqual({ record: 'what a knew' })
})

test('B10: old and excess sessions are evicted', () => {
  const { clock, registry } = registryOf(2)
  for (const id of ['1', '2', '3']) registry.keep('a', id, id)
  registry.leave('a')
  expect(['1', '2', '3'].map((id) => registry.takeOver('b', id, '') !== undefined)).toEqual([false, true, true])
  clock.advance(2 * 3_600_000)
  expect(registry.takeOver('c', '2', 'b')).toBeUndefined()
})
