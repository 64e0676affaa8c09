import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { silentLog } from '../../core/log.ts'
import { chooseTraces } from './settings.ts'
import type { Traces } from './traces.ts'

const choose = (otlp: string | undefined, before?: Traces, env: Record<string, string> = {}) =>
  chooseTraces(otlp === undefined ? undefined : { otlp, disabled: false }, {
    env,
    before,
    version: '1.2.3',
    clock: createManualClock(),
    log: silentLog,
  })

test('F16: without configuration there are no traces', async () => {
  expect(await choose(undefined)).toEqual({ traces: undefined, warnings: [] })
})

test('F16, G8: the traces of the previous configuration are kept if no setting changed, and only then', async () => {
  const { traces } = await choose('http://127.0.0.1:9')
  expect((await choose('http://127.0.0.1:9', traces)).traces).toBe(traces)
  expect((await choose('http://127.0.0.1:10', traces)).traces).not.toBe(traces)
  expect((await choose('http://127.0.0.1:9', traces, { OTEL_SERVICE_NAME: 'other' })).traces).not.toBe(traces)
  expect((await choose(undefined, traces)).traces).toBeUndefined()
})

test('F16: an invalid endpoint causes a warning', async () => {
  const { traces, warnings } = await choose(undefined, undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: 'nowhere' })
  expect(traces).toBeUndefined()
  expect(warnings).toHaveLength(1)
})
