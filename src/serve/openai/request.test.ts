import { describe, expect, test } from 'vitest'
import type { HttpError } from '../errors.ts'
import { openAiError } from './chat.ts'
import { readRequest } from './request.ts'

const user = { role: 'user', content: 'Hi' }
const read = (body: object) => readRequest(Buffer.from(JSON.stringify({ messages: [user], ...body })))

function refused(body: object | string) {
  try {
    readRequest(Buffer.from(typeof body === 'string' ? body : JSON.stringify({ messages: [user], ...body })))
  } catch (thrown) {
    return openAiError(thrown as HttpError).error
  }
  throw new Error('nothing was refused')
}

describe('S6: a request in the format of OpenAI', () => {
  test('the smallest request', () => {
    expect(read({})).toEqual({ asked: { messages: [user], stream: false }, includeUsage: false, agent: undefined })
  })

  test('all supported fields are used', () => {
    const parameters = { type: 'object', properties: { a: { type: 'string' } } }
    const given = {
      model: 'large',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 5,
      max_completion_tokens: 7,
      temperature: 0,
      tools: [{ type: 'function', function: { name: 'mine', description: 'Mine', parameters, strict: true } }],
      tool_choice: 'required',
      toolway: { mode: 'agent', agent: 'dev', only: ['files.*'] },
    }
    expect(read(given)).toEqual({
      asked: {
        messages: [user],
        model: 'large',
        mode: 'agent',
        only: ['files.*'],
        stream: true,
        maxTokens: 7,
        temperature: 0,
        tools: [{ name: 'mine', description: 'Mine', parameters }],
        toolChoice: 'required',
      },
      includeUsage: true,
      agent: 'dev',
    })
    expect(read({ max_tokens: 5 }).asked.maxTokens).toBe(5)
    expect(read({ parallel_tool_calls: false }).asked.parallelToolCalls).toBe(false)
  })

  test('tool_choice may name one of the tools', () => {
    const tools = ['a', 'b'].map((name) => ({ type: 'function', function: { name } }))
    const { asked } = read({ tools, tool_choice: { type: 'function', function: { name: 'b' } } })
    expect(asked).toMatchObject({ tools: [{ name: 'a' }, { name: 'b' }], toolChoice: { tool: 'b' } })
  })

  test('null counts as missing, and unknown fields are ignored', () => {
    const nulls = ['model', 'tools', 'tool_choice', 'stream', 'stream_options', 'temperature', 'toolway', 'n', 'stop']
    const odd = { seed: 1, top_p: 0.5, user: 'me', metadata: { a: 1 }, future: [{}], parallel_tool_calls: true }
    const harmless = { n: 1, logprobs: false, stop: [], response_format: { type: 'text' }, modalities: ['text'] }
    expect(read({ ...Object.fromEntries(nulls.map((name) => [name, null])), ...odd })).toEqual(read({}))
    expect(read(harmless)).toEqual(read({}))
  })

  test('messages of every role, with parts, calls and results', () => {
    const calls = [{ id: 'c1', type: 'function', function: { name: 'mine', arguments: '{}' } }]
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } }
    const audio = { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } }
    const { messages } = read({
      messages: [
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'Be ' },
            { type: 'text', text: 'brief' },
          ],
          name: 'x',
        },
        { role: 'user', content: [{ type: 'text', text: 'See' }, image, audio], name: 'me' },
        { role: 'assistant', tool_calls: calls },
        { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'ok' }] },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }], tool_calls: [] },
        user,
      ],
    }).asked
    expect(messages).toEqual([
      { role: 'system', content: 'Be brief' },
      {
        role: 'user',
        content: [{ type: 'text', text: 'See' }, { ...image, image_url: { url: image.image_url.url } }, audio],
      },
      { role: 'assistant', content: null, tool_calls: calls },
      { role: 'tool', tool_call_id: 'c1', content: 'ok' },
      { role: 'assistant', content: 'No.' },
      user,
    ])
  })
})

describe('unsupported fields are refused by name', () => {
  test.each([
    ['n', { n: 2 }],
    ['logprobs', { logprobs: true }],
    ['top_logprobs', { top_logprobs: 3 }],
    ['stop', { stop: 'END' }],
    ['response_format', { response_format: { type: 'json_schema', json_schema: {} } }],
    ['response_format', { response_format: { type: 'json_object' } }],
    ['functions', { functions: [] }],
    ['tool_choice', { tool_choice: { type: 'allowed_tools', allowed_tools: {} } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'x' } }],
  ])('%s', (param, body) => {
    expect(refused(body)).toMatchObject({ type: 'invalid_request_error', param, code: 'unsupported_parameter' })
  })

  const call = (id: string) => ({ id, type: 'function', function: { name: 'a', arguments: '' } })
  test.each([
    ['messages', { messages: undefined }],
    ['messages', { messages: [] }],
    ['messages[0]', { messages: ['hi'] }],
    ['messages[0].role', { messages: [{ role: 'function', content: '' }] }],
    ['messages[0].content', { messages: [{ role: 'user' }] }],
    ['messages[0].content[0].type', { messages: [{ role: 'user', content: [{ type: 'file', file: {} }] }] }],
    ['messages[0].content[0].text', { messages: [{ role: 'user', content: [{ type: 'text', text: 1 }] }] }],
    ['messages[0].content[0].type', { messages: [{ role: 'system', content: [{ type: 'image_url' }] }] }],
    [
      'messages[0].tool_calls[0].type',
      { messages: [{ role: 'assistant', tool_calls: [{ ...call('a'), type: 'custom' }] }] },
    ],
    ['messages[1]', { messages: [user, { role: 'tool', tool_call_id: 'x', content: '' }] }],
    ['messages[1]', { messages: [{ role: 'assistant', tool_calls: [call('a')] }, user] }],
    ['messages[0]', { messages: [{ role: 'assistant', tool_calls: [call('a')] }] }],
    ['tools[0].type', { tools: [{ type: 'custom', custom: { name: 'x' } }] }],
    ['tools[0].function.name', { tools: [{ type: 'function', function: { name: 'a b' } }] }],
    ['tools', { tools: ['a', 'a'].map((name) => ({ type: 'function', function: { name } })) }],
    ['tool_choice', { tool_choice: { type: 'function', function: { name: 'a' } } }],
    ['tool_choice', { tool_choice: 'any' }],
    ['tool_choice.function', { tool_choice: { type: 'function', name: 'a' } }],
    ['max_tokens', { max_tokens: 0 }],
    ['temperature', { temperature: 3 }],
    ['stream', { stream: 'yes' }],
    ['toolway.mode', { toolway: { mode: 'fast' } }],
    ['toolway', { toolway: { mood: 'fast' } }],
  ])('%s of %j', (param, body) => {
    const error = refused(body)
    expect(error).toMatchObject({ type: 'invalid_request_error', param, code: 'invalid_request' })
    expect(error.message).toMatch(/^"\w.*" is invalid: .+\.$/)
  })

  test('a body that is not a JSON object or is nested too deeply', () => {
    for (const body of ['', '{', 'null', '[]', '"x"']) expect(refused(body).message).toMatch(/JSON/)
    expect(refused(`{"messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`).message).toMatch(/more than 256 levels/)
  })
})
