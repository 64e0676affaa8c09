import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf } from '../core/call.fixture.ts'
import type { Caller } from '../core/call.ts'
import { Budget } from '../core/limits/budget.ts'
import { createSeal } from '../lib/seal.ts'
import { KeptResults } from './kept-results.ts'
import { memoryTtlStore } from './ttl-store.ts'

const minuteMs = 60_000
const caller: Caller = { ...callOf().caller, authenticated: true, admin: false }
const result = (size = 10) => ({ server: 'files', tool: 'read', bytes: Buffer.alloc(size, 'x') })

function openResults(shared?: ConstructorParameters<typeof KeptResults>[0]['shared'], clock = createManualClock()) {
  const results = new Budget('results', { what: 'results', limit: 10, perCaller: 3 })
  const result_bytes = new Budget('result_bytes', { what: 'bytes', limit: 1_000, perCaller: 500 })
  return { clock, results, result_bytes, store: new KeptResults({ budgets: { results, result_bytes }, shared, clock }) }
}

test('W7: a kept result is found by its principal and agent only', async () => {
  const { store } = openResults()
  await store.keep(caller, 'h', result(), minuteMs)
  expect(await store.find({ ...caller, session: 'other' }, 'h', minuteMs)).toMatchObject(result())
  expect(await store.find({ ...caller, principal: 'other' }, 'h', minuteMs)).toBeUndefined()
  expect(await store.find({ ...caller, agent: 'other' }, 'h', minuteMs)).toBeUndefined()
})

test('W7: kept results end with their time, also if nobody asks', async () => {
  const { store, clock, results, result_bytes } = openResults()
  await store.keep(caller, 'a', result(), minuteMs)
  await clock.pass(minuteMs / 2)
  await store.keep(caller, 'b', result(), minuteMs)
  await clock.pass(minuteMs / 2)
  expect([results.used, result_bytes.used]).toEqual([1, 10])
  expect(await store.find(caller, 'b', minuteMs)).toBeDefined()
  await clock.pass(minuteMs / 2)
  expect([results.used, result_bytes.used, clock.pending]).toEqual([0, 0, 0])
})

test('W7: a caller that exceeds its share loses its own oldest results', async () => {
  const { store } = openResults()
  await store.keep({ ...caller, principal: 'other' }, 'theirs', result(), minuteMs)
  for (const handle of ['a', 'b', 'c', 'd']) await store.keep(caller, handle, result(200), minuteMs)
  const found = await Promise.all(['a', 'b', 'c', 'd'].map((handle) => store.find(caller, handle, minuteMs)))
  expect(found.map((one) => one !== undefined)).toEqual([false, false, true, true])
  expect(await store.find({ ...caller, principal: 'other' }, 'theirs', minuteMs)).toBeDefined()
})

test('W7: another process finds a result that is not too large, which nobody else can read in the store', async () => {
  const clock = createManualClock()
  const texts: string[] = []
  const ttlStore = memoryTtlStore(clock)
  const seal = createSeal('a secret of replicas')
  const shared = {
    seal,
    ttlStore: {
      ...ttlStore,
      set: (...[key, text, ms]: Parameters<typeof ttlStore.set>) => {
        texts.push(text)
        return ttlStore.set(key, text, ms)
      },
    },
  }
  const [here, there] = [openResults(shared, clock).store, openResults(shared, clock).store]
  await here.keep(caller, 'h', result(), minuteMs)
  expect(texts.join()).not.toContain('files')
  expect(await there.find(caller, 'h', minuteMs)).toMatchObject(result())
  expect(await there.find({ ...caller, agent: 'other' }, 'h', minuteMs)).toBeUndefined()
  await clock.pass(minuteMs + 1)
  expect(await there.find(caller, 'h', minuteMs)).toBeUndefined()
  await here.keep(caller, 'large', result(600 * 1024), minuteMs)
  expect(texts).toHaveLength(1)
})
