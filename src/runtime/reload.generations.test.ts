import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createWorlds } from './reload.ts'

function setUp() {
  const clock = createManualClock()
  const ended: string[] = []
  const worlds = createWorlds({ first: 'one', clock, end: async (world) => void ended.push(world) })
  return { clock, ended, worlds }
}

test('G8: what has begun in a world ends there, and what begins later begins in the next one', async () => {
  const { worlds, clock, ended } = setUp()
  const gate = Promise.withResolvers<void>()
  const seen: string[] = []
  const early = worlds.within(async (world) => {
    await gate.promise
    seen.push(world)
  })
  worlds.follow('two')
  await worlds.within(async (world) => void seen.push(world))
  clock.advance(60_000)
  expect([seen, ended, worlds.living]).toEqual([['two'], [], ['two', 'one']])
  gate.resolve()
  await early
  expect([seen, ended, worlds.living]).toEqual([['two', 'one'], ['one'], ['two']])
})

test('G8: a world without work is ended after a moment, once', async () => {
  const { worlds, clock, ended } = setUp()
  worlds.follow('two')
  await worlds.within(async () => {})
  expect(ended).toEqual([])
  clock.advance(1_000)
  expect(ended).toEqual(['one'])
  worlds.follow('three')
  worlds.follow('four')
  clock.advance(1_000)
  expect(ended).toEqual(['one', 'two', 'three'])
  expect([worlds.present, worlds.living]).toEqual(['four', ['four']])
})

test('G8: work that fails counts as done', async () => {
  const { worlds, clock, ended } = setUp()
  const failed = worlds.within(() => Promise.reject(new Error('no')))
  worlds.follow('two')
  await expect(failed).rejects.toThrow('no')
  clock.advance(1_000)
  expect(ended).toEqual(['one'])
})

test('all worlds are ended in the end, and no timer is left', async () => {
  const { worlds, clock, ended } = setUp()
  worlds.within(() => new Promise(() => {}))
  worlds.follow('two')
  await worlds[Symbol.asyncDispose]()
  expect(ended.sort()).toEqual(['one', 'two'])
  expect(clock.pending).toBe(0)
})
