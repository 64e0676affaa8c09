import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callSchema, finalSchema, selectionSchema } from '../../constrain/stage-schemas.ts'
import { hello, patient } from '../model.fixture.ts'
import { collectAnswer } from '../model.ts'
import { missingLibrary, orWhy, type Running, startRandom } from './model.fixture.ts'
import { randomModel } from './random.fixture.ts'
import { writtenTools } from './tools.fixture.ts'
import { tryConstraint, tryTools } from './valid.fixture.ts'

test('the same seed makes the same model, another seed another one', () => {
  expect(randomModel({ seed: 5 }).equals(randomModel({ seed: 5 }))).toBe(true)
  expect(randomModel({ seed: 5 }).equals(randomModel({ seed: 6 }))).toBe(false)
})

const title = `S4: a model that knows nothing answers rightly${orWhy}`

// A hundred times each, and with the tools of real servers, in tests/deep/gguf.test.ts.
describe.skipIf(missingLibrary !== undefined)(title, { timeout: 60_000 }, () => {
  let started: Running
  beforeAll(async () => {
    started = await startRandom()
  })
  afterAll(() => started[Symbol.asyncDispose]())

  test.each([
    ['selection', selectionSchema(writtenTools.map(({ name }) => name))],
    ['call', callSchema(writtenTools)],
    ['final', finalSchema],
  ])('under the schema of %s', async (_stage, schema) => {
    for (let run = 0; run < 2; run++) expect(await tryConstraint(started.model, schema)).toBeUndefined()
  })

  test('for tools of every kind', async () => {
    const tools = writtenTools.filter((_, place) => place % 4 === 1)
    for (const tool of tools) expect(await tryTools(started.model, [tool]), tool.name).toBeUndefined()
  })

  test.each([
    { type: 'array', items: { type: 'array', items: { type: 'number', minimum: 0.5 }, maxItems: 3 }, maxItems: 1024 },
    { type: 'string', minLength: 60_000, maxLength: 65_536 },
    { type: 'string', pattern: '^(a|aa|aaa)*(a*)*(a|b|ab)+$' },
    { type: 'string', pattern: '^(\\w+\\s?){0,400}$' },
    { type: 'string', pattern: '^(.*.*.*.*)*x$' },
  ])('llama.cpp accepts bounds of any size and finishes: %j', async (schema) => {
    const asked = { messages: hello, signal: patient(), constraint: { name: 'large', schema }, maxTokens: 60 }
    const { text, form } = await collectAnswer(started.model.complete(asked))
    expect([text.length > 0, form]).toEqual([true, 'grammar'])
  })
})
