import { describe, expect, test } from 'vitest'
import { refusalOf } from '../access.fixture.ts'
import { over } from './inference.fixture.ts'
import { says } from './model-server.fixture.ts'

describe('generate', () => {
  test('F17: a prompt is sent to the model with its options, and the answer is returned', async () => {
    await using model = await over({ '/chat/completions': says('Hello.') })
    const body = await model.run('generate', { prompt: 'Hi', system: 'Be kind', max_tokens: 5, temperature: 0.5 })
    expect(body).toEqual({
      content: [{ type: 'text', text: 'Hello.' }],
      structuredContent: {
        model: 'local',
        text: 'Hello.',
        finish_reason: 'stop',
        usage: { prompt_tokens: 7, completion_tokens: 3 },
      },
    })
    expect(model.asked[0]?.json).toMatchObject({
      model: 'm',
      messages: [
        { role: 'system', content: 'Be kind' },
        { role: 'user', content: 'Hi' },
      ],
      max_tokens: 5,
      temperature: 0.5,
    })
  })

  test('F17: a conversation is continued; a prompt beside it, or neither, is refused', async () => {
    await using model = await over({ '/chat/completions': says('three') })
    const messages = [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
    ]
    await model.run('generate', { messages })
    expect(model.asked[0]?.json.messages).toEqual(messages)
    for (const args of [{}, { prompt: 'x', messages }]) {
      expect((await refusalOf(model.run('generate', args))).message).toContain('either "prompt" or "messages"')
    }
  })

  const schema = {
    type: 'object',
    properties: { a: { type: 'integer' } },
    required: ['a'],
    additionalProperties: false,
  }

  test('F17: with a schema the model is held to it, and the answer comes as a value', async () => {
    await using model = await over({ '/chat/completions': says('```json\n{"a": 1}\n```') })
    const { content, structuredContent } = await model.run('generate', { prompt: 'x', schema })
    expect(structuredContent).toMatchObject({ value: { a: 1 }, text: '{"a":1}' })
    expect(content).toEqual([{ type: 'text', text: '{"a":1}' }])
    expect(model.asked[0]?.json.response_format).toMatchObject({ type: 'json_schema' })
  })

  test('F17: the text keeps every digit of the answer', async () => {
    await using model = await over({ '/chat/completions': says('{"a": 12345678901234567891}') })
    const { content } = await model.run('generate', { prompt: 'x', schema })
    expect(content).toEqual([{ type: 'text', text: '{"a": 12345678901234567891}' }])
  })

  test('F17: an answer that repeats a member has the validated value as its text', async () => {
    await using model = await over({ '/chat/completions': says('{"a": 1, "a": 2}') })
    const { content } = await model.run('generate', { prompt: 'x', schema })
    expect(content).toEqual([{ type: 'text', text: '{"a":2}' }])
  })

  test('S4, F17: an invalid answer is not quoted with half an emoji', async () => {
    await using model = await over({ '/chat/completions': says(`${'x'.repeat(3_999)}\u{1F600}`) })
    await refusalOf(model.run('generate', { prompt: 'x', schema }))
    const messages = model.asked[1]?.json.messages as { content: string }[]
    expect(messages.map(({ content }) => content.isWellFormed())).toEqual([true, true, true])
  })

  test('S4, F17: an answer that does not fit the schema is quoted with its problem once, and then is a failure', async () => {
    await using model = await over({ '/chat/completions': says('Sorry, no.') })
    expect(await refusalOf(model.run('generate', { prompt: 'x', schema }))).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('is not JSON'),
      details: { requestOnly: true },
    })
    expect(model.asked).toHaveLength(2)
    expect(model.asked[1]?.json.messages).toEqual([
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'Sorry, no.' },
      { role: 'user', content: expect.stringContaining('is not JSON') },
    ])
  })

  test('S4, F17: the second answer counts, with the tokens of both', async () => {
    const replies = [says('Sorry, no.'), says('{"a": 1}')]
    await using model = await over({
      '/chat/completions': (asked, response) => replies.shift()?.(asked, response),
    })
    expect((await model.run('generate', { prompt: 'x', schema })).structuredContent).toMatchObject({
      value: { a: 1 },
      usage: { prompt_tokens: 14, completion_tokens: 6 },
    })
  })
})
