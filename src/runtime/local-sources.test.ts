import { describe, expect, test } from 'vitest'
import { refusalOf } from '../tools/access.fixture.ts'
import { over } from '../tools/inference/inference.fixture.ts'
import { says } from '../tools/inference/model-server.fixture.ts'
import { answerParser } from './local-sources.ts'

const schema = {
  type: 'object',
  properties: { items: { type: 'array', items: { type: 'string' } }, note: { type: 'string' } },
  required: ['items'],
  additionalProperties: false,
}

const model = (text: string, finishReason?: string) =>
  over({ '/chat/completions': says(text, finishReason) }, { parser: answerParser })

describe('S4, F17: generate with a schema', () => {
  test.each([
    ["```json\n{'items': ['a',],}\n```", 'stop'],
    ['{"items": ["a"], "note": null}', 'stop'],
    ['{"items": ["a"]', 'stop'],
    ['{"items": ["a"]}', 'length'],
  ])('%j with the finish reason %s is repaired, and the text is the JSON of the value', async (text, reason) => {
    await using served = await model(text, reason)
    // A text that is the JSON of the value already stays as it is.
    const json = expect.stringMatching(/^\{"items": ?\["a"\]\}$/)
    expect(await served.run('generate', { prompt: 'x', schema })).toMatchObject({
      content: [{ type: 'text', text: json }],
      structuredContent: { value: { items: ['a'] }, text: json },
    })
    expect(served.asked).toHaveLength(1)
  })

  test.each([
    ['{"items":["alpha","beta","gam', 'stop', 'was cut off'],
    ['{"items":["alpha","beta","gam', 'length', 'was cut off'],
    ['{"items":["alpha","beta"', 'length', 'was cut off'],
    ['{"items":[1], "nte": "x"}', 'stop', '"items[0]" must be'],
    ['', 'stop', 'is empty'],
    ['{"items": ["say "a" # b"], "note": "c"}', 'stop', 'unclear where its strings end'],
  ])('%j with the finish reason %s is an error after a second attempt', async (text, reason, problem) => {
    await using served = await model(text, reason)
    const error = await refusalOf(served.run('generate', { prompt: 'x', schema }))
    expect(error).toMatchObject({ details: { requestOnly: true }, message: expect.stringContaining(problem) })
    expect(served.asked).toHaveLength(2)
  })

  test.each([
    [{ $ref: 'https://schemas.example/a.json' }, 'another document'],
    [{ properties: { a: { $ref: '#/$defs/missing' } } }, 'does not define'],
    [{ type: 'objekt' }, 'objekt'],
  ])('the schema %j is refused before the model is asked', async (unusable, reason) => {
    await using served = await model('{}')
    expect(await refusalOf(served.run('generate', { prompt: 'x', schema: unusable }))).toMatchObject({
      code: 'INVALID_ARGUMENTS',
      message: expect.stringContaining(reason),
    })
    expect(served.asked).toHaveLength(0)
  })
})
