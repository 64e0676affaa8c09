import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { configSchema } from '../../config/schema.ts'
import { ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { createModels } from './create-models.ts'
import { failure, hello, patient } from './model.fixture.ts'
import { collectAnswer, type Model } from './model.ts'
import { ignores, modelServer } from './server.fixture.ts'

const around = () => ({ clock: createManualClock(), log: silentLog })

test('S6: models by name, in the order of the configuration, without those that are disabled', () => {
  const openai = { kind: 'openai', baseUrl: 'http://127.0.0.1:1/v1', model: 'm' }
  const { models } = configSchema.parse({
    models: { b: openai, a: openai, off: { ...openai, disabled: true }, file: { kind: 'gguf', path: '/m.gguf' } },
  })
  expect([...createModels(models, around()).keys()]).toEqual(['b', 'a', 'file'])
})

test('S6: its timeouts are those of the configuration', async () => {
  await using server = await modelServer(ignores)
  const timeouts = { total: '9s', step: '2s' }
  const { models } = configSchema.parse({
    models: { a: { kind: 'openai', baseUrl: server.baseUrl, model: 'm', timeouts } },
  })
  const { clock, log } = around()
  await using model = createModels(models, { clock, log }).get('a') as Model
  const error = failure(collectAnswer(model.complete({ messages: hello, signal: patient() })))
  await server.request(1)
  clock.advance(2_000)
  expect(await error).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('within 2 s') })
})

test('S6: a model file is created on first use, once, and again after a failure', async () => {
  let made = 0
  let closed = 0
  const { models } = configSchema.parse({ models: { file: { kind: 'gguf', path: '/m.gguf' } } })
  const all = createModels(models, {
    ...around(),
    gguf: async (name, { path }) => {
      if (++made === 1) throw new ToolwayError('SERVER_UNAVAILABLE', 'not there yet')
      return {
        name,
        async *complete() {
          yield { kind: 'text', text: path } as const
        },
        async [Symbol.asyncDispose]() {
          closed++
        },
      }
    },
  })
  const model = all.get('file') as Model
  const ask = () => collectAnswer(model.complete({ messages: hello, signal: patient() }))
  expect(made).toBe(0)
  expect(await failure(ask())).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  expect((await Promise.all([ask(), ask()])).map(({ text }) => text)).toEqual(['/m.gguf', '/m.gguf'])
  expect(made).toBe(2)
  await model[Symbol.asyncDispose]()
  expect(closed).toBe(1)
})
