import { expect, test } from 'vitest'
import { traceSettings } from '../telemetry/traces/settings.ts'
import { SharedParts } from './generations.ts'

function setUp() {
  const closed: string[] = []
  const part = (name: string) => ({ [Symbol.asyncDispose]: async () => void closed.push(name) })
  return { closed, part }
}

test('G8: SharedParts reuses a part while its key stays equal, and closes it with the last generation that uses it', async () => {
  const { closed, part } = setUp()
  const [first, second, third] = [new SharedParts(), new SharedParts(), new SharedParts()]
  const models = first.add('models', { a: [1] }, part('models'))
  const executor = first.add('executor', 'small', part('executor'))
  expect(first.reuse(undefined, 'pins', 'off')).toBeUndefined()
  expect(second.reuse(first, 'models', { a: [1] })).toBe(models)
  expect(second.reuse(first, 'executor', 'large')).toBeUndefined()
  second.add('executor', 'large', part('large executor'))
  await first[Symbol.asyncDispose]()
  expect(closed).toEqual(['executor'])
  expect(third.reuse(second, 'models', { a: [1] })).toBe(models)
  expect(third.reuse(second, 'executor', 'small')).not.toBe(executor)
  await third[Symbol.asyncDispose]()
  await third[Symbol.asyncDispose]()
  expect(closed).toEqual(['executor'])
  await second[Symbol.asyncDispose]()
  expect(closed).toEqual(['executor', 'models', 'large executor'])
})

test('F16, G8: traces are shared if no setting changed, and only then', () => {
  const { part } = setUp()
  const keyOf = (otlp: string, env: Record<string, string> = {}) =>
    traceSettings({ otlp, disabled: false }, env).settings
  const before = new SharedParts()
  const traces = before.add('traces', keyOf('http://127.0.0.1:9'), part('traces'))
  const after = (key: unknown) => new SharedParts().reuse(before, 'traces', key)
  expect(after(keyOf('http://127.0.0.1:9'))).toBe(traces)
  expect(after(keyOf('http://127.0.0.1:10'))).toBeUndefined()
  expect(after(keyOf('http://127.0.0.1:9', { OTEL_SERVICE_NAME: 'other' }))).toBeUndefined()
})
