import { expect, test } from 'vitest'
import { createManualClock } from '../../../../tests/fixtures/clock.ts'
import { createBudgets } from '../../../core/limits/budget.ts'
import { silentLog } from '../../../core/log.ts'
import { collectAnswer } from '../model.ts'
import { GgufModel } from './gguf-model.ts'

test('V6: one caller cannot fill the queue of a model', async () => {
  const { model_requests: requests } = createBudgets()
  const config = { path: '/nowhere', context: 512, idle: 1_000, timeout: 1_000 }
  // A model that is loaded for ever.
  const load = () => new Promise<never>(() => {})
  await using model = new GgufModel({ name: 'm', config, requests, clock: createManualClock(), log: silentLog, load })
  const gone = new AbortController()
  const ask = (owner: string) => collectAnswer(model.complete({ messages: [], owner, signal: gone.signal }))
  const asked = Array.from({ length: requests.perCaller }, () => ask('anna').catch(() => 'gone'))
  await expect(ask('anna')).rejects.toMatchObject({ code: 'OVERLOADED' })
  asked.push(ask('bert').catch(() => 'gone'))
  expect(requests.use()).toMatchObject({ used: 13, largest: 12, refused: 1 })
  gone.abort()
  expect(await Promise.all(asked)).toEqual(Array(13).fill('gone'))
  // The first one keeps its place until the model has stopped loading.
  expect(requests.used).toBe(1)
})
