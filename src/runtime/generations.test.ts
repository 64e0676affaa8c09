import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { Generations } from './generations.ts'

function setUp() {
  const clock = createManualClock()
  const ended: string[] = []
  const generations = new Generations<string>({
    clock,
    dispose: async (generation) => void ended.push(generation),
  })
  generations.replace('one')
  return { clock, ended, generations }
}

test('G8: work finishes in the generation in which it started, and later work starts in the next one', async () => {
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

test('G8: a replaced generation without work is disposed of once, after the grace period', async () => {
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

test('all generations are disposed of at the end, and no timer is left', async () => {
  const { generations, clock, ended } = setUp()
  generations.run(() => new Promise(() => {}))
  generations.replace('two')
  await generations[Symbol.asyncDispose]()
  expect(ended.sort()).toEqual(['one', 'two'])
  expect(clock.pending).toBe(0)
})

test('V6, G8: nothing refers to a generation that was disposed of', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const clock = createManualClock()
  const refs: WeakRef<object>[] = []
  const build = () => {
    const generation = { name: refs.length }
    refs.push(new WeakRef(generation))
    return generation
  }
  const generations = new Generations<object>({ clock, dispose: async () => {} })
  generations.replace(build())
  for (let round = 0; round < 3; round++) {
    generations.replace(build())
    clock.advance(1_000)
  }
  // A WeakRef keeps its target until the end of the turn in which it was created.
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  expect(refs.map((ref) => ref.deref() !== undefined)).toEqual([false, false, false, true])
})
