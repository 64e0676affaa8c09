import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import type { LoadedConfig } from '../config/load.ts'
import { configSchema } from '../config/schema.ts'
import { Reload, ReloadHistory } from './reload.ts'

const loadedOf = (written: object = {}) =>
  ({ config: configSchema.parse(written), files: [] }) as unknown as LoadedConfig
const eventAt = (at: number) => ({ at, ok: true, error: null, changes: [] })

test('G8: the history of reloads is bounded, newest first, and emits each event once', () => {
  const history = new ReloadHistory(2)
  const heard: number[] = []
  const listening = history.onAttempt(({ at }) => heard.push(at))
  for (const at of [1, 2, 3]) history.add(eventAt(at))
  listening[Symbol.dispose]()
  history.add(eventAt(4))
  expect(history.attempts.map(({ at }) => at)).toEqual([4, 3])
  expect(heard).toEqual([1, 2, 3])
})

test('G8: a reload records and logs its changes, and a failed one the reason', async () => {
  const clock = createManualClock()
  const log = createKeptLog()
  let current = loadedOf()
  let next = async () => loadedOf({ limits: { perMinute: 5 } })
  const reload = new Reload({
    history: new ReloadHistory(),
    current: () => current,
    load: () => next(),
    apply: async (loaded) => {
      current = loaded
    },
    clock,
    log,
  })
  await reload.now()
  next = () => Promise.reject(new Error('line 3: no such key'))
  clock.advance(1_000)
  await reload.now()
  expect(reload.history.attempts.map(({ difference: _, ...attempt }) => attempt)).toEqual([
    { at: clock.now(), ok: false, error: 'line 3: no such key', changes: [] },
    { at: clock.now() - 1_000, ok: true, error: null, changes: ['limits.perMinute: none → 5'] },
  ])
  expect(log.lines.map(({ level, facts }) => [level, facts.changes])).toEqual([
    ['info', ['limits.perMinute: none → 5']],
    ['error', undefined],
  ])
})
