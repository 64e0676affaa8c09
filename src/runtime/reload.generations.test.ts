import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createGenerations } from './reload.ts'

function setUp() {
  const clock = createManualClock()
  const ended: string[] = []
  const generations = createGenerations({
    first: 'one',
    clock,
    dispose: async (generation) => void ended.push(generation),
  })
  return { clock, ended, generations }
}

test('G8: what has begun in a world ends there, and what begins later begins in the next one', async () => {
  const { generations, clock, ended } = setUp()
  const gate = Promise.withResolvers<void>()
  const seen: string[] = []
  const early = generations.run(async (generation) => {
    await gate.promise
    seen.push(generation)
  })
  generations.replace('two')
  await generations.run(async (generation) => void seen.push(generation))
  clock.advance(60_000)
  expect([seen, ended, generations.alive]).toEqual([['two'], [], ['two', 'one']])
  gate.resolve()
  await early
  expect([seen, ended, generations.alive]).toEqual([['two', 'one'], ['one'], ['two']])
})

test('G8: a world without work is ended after a moment, once', async () => {
  const { generations, clock, ended } = setUp()
  generations.replace('two')
  await generations.run(async () => {})
  expect(ended).toEqual([])
  clock.advance(1_000)
  expect(ended).toEqual(['one'])
  generations.replace('three')
  generations.replace('four')
  clock.advance(1_000)
  expect(ended).toEqual(['one', 'two', 'three'])
  expect([generations.current, generations.alive]).toEqual(['four', ['four']])
})

test('G8: work that fails counts as done', async () => {
  const { generations, clock, ended } = setUp()
  const failed = generations.run(() => Promise.reject(new Error('no')))
  generations.replace('two')
  await expect(failed).rejects.toThrow('no')
  clock.advance(1_000)
  expect(ended).toEqual(['one'])
})

test('all worlds are ended in the end, and no timer is left', async () => {
  const { generations, clock, ended } = setUp()
  generations.run(() => new Promise(() => {}))
  generations.replace('two')
  await generations[Symbol.asyncDispose]()
  expect(ended.sort()).toEqual(['one', 'two'])
  expect(clock.pending).toBe(0)
})
