import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, generateText, stepCountIs, streamText, tool } from 'ai'
import OpenAI, { AuthenticationError, NotFoundError, RateLimitError } from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { ChatRequest } from '../../core/chat.ts'
import { ToolwayError } from '../../core/errors.ts'
import { aborted, createTestChat, endOf, usual } from './chat.fixture.ts'
import { openChatServer } from './openai.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})
const open = async (script?: Parameters<typeof createTestChat>[0]) => {
  const server = stack.use(await openChatServer({ scripted: createTestChat(script) }))
  const { baseURL, apiKey } = server
  const openai = new OpenAI({ baseURL, apiKey, maxRetries: 0 })
  const provider = createOpenAICompatible({ name: 'toolway', baseURL, apiKey, includeUsage: true })
  return { ...server, openai, model: provider('local') }
}

const messages = [{ role: 'user' as const, content: 'Hi' }]
const mine = { id: 'h1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } } as const

/** Hands its call to the client first, and answers once the client comes back with the result. */
const roundTrip = ({ messages }: ChatRequest) => {
  const last = messages.at(-1)
  if (last?.role !== 'tool') return [endOf({ reason: 'calls', handed: [mine] })]
  return [{ kind: 'text', text: `It is ${last.content}.` } as const, endOf()]
}

const rateLimited = async function* () {
  yield* [] as never[]
  throw new ToolwayError('RATE_LIMITED', 'Slow down.', { retryAfterMs: 3_000 })
}

describe('S6: the official client of OpenAI, unchanged', () => {
  test('asks, and is answered', async () => {
    const { openai, chat } = await open()
    const completion = await openai.chat.completions.create({ model: 'local', messages })
    expect(completion.choices[0]?.message.content).toBe('Hello wörld')
    expect(completion.usage?.total_tokens).toBe(16)
    expect(completion._request_id).toBe(chat.asked[0]?.id)
  })

  test('streams, and reads past what it does not know', async () => {
    const { openai } = await open()
    const stream = await openai.chat.completions.create({
      ...{ model: 'local', messages, stream: true },
      stream_options: { include_usage: true },
    })
    let text = ''
    let tokens = 0
    for await (const { choices, usage } of stream) {
      text += choices[0]?.delta.content ?? ''
      tokens = usage?.total_tokens ?? tokens
    }
    expect([text, tokens]).toEqual(['Hello wörld', 16])
    const final = await openai.chat.completions.stream({ model: 'local', messages }).finalChatCompletion()
    expect(final.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Hello wörld' } })
  })

  test('runs its own tools, by its own helper, streaming or not', async () => {
    const { openai, chat } = await open(roundTrip)
    const parameters = { type: 'object', properties: { city: { type: 'string' } } }
    const asked: string[] = []
    const weather = {
      ...{ name: 'weather', description: 'Tells the weather', parameters },
      parse: JSON.parse as (input: string) => { city: string },
      function: ({ city }: { city: string }) => {
        asked.push(city)
        return 'sunny'
      },
    }
    for (const stream of [false, true]) {
      const tools = [{ type: 'function' as const, function: weather }]
      const options = { model: 'local', messages, tools } as const
      const runner = stream
        ? openai.chat.completions.runTools({ ...options, stream: true })
        : openai.chat.completions.runTools(options)
      expect(await runner.finalContent()).toBe('It is sunny.')
    }
    expect(asked).toEqual(['Oslo', 'Oslo'])
    expect(chat.asked[0]?.tools).toEqual([{ name: 'weather', description: 'Tells the weather', parameters }])
    expect(chat.asked[1]?.messages).toEqual([
      ...messages,
      { role: 'assistant', content: null, tool_calls: [mine] },
      { role: 'tool', tool_call_id: 'h1', content: 'sunny' },
    ])
  })

  test('lists models', async () => {
    const { openai } = await open()
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual(['local', 'large'])
    expect((await openai.models.retrieve('large')).id).toBe('large')
  })

  test('throws its own error classes', async () => {
    const { openai, chat, baseURL } = await open()
    const ask = (model: string, client = openai) => client.chat.completions.create({ model, messages })
    await expect(ask('gpt-4')).rejects.toThrow(NotFoundError)
    await expect(ask('local', new OpenAI({ baseURL, apiKey: 'wrong', maxRetries: 0 }))).rejects.toThrow(
      AuthenticationError,
    )
    chat.script = rateLimited
    const limited = await ask('local').catch((error: unknown) => error as RateLimitError)
    expect(limited).toBeInstanceOf(RateLimitError)
    expect(limited).toMatchObject({ code: 'RATE_LIMITED', requestID: chat.asked.at(-1)?.id })
  })

  test('gets an error in the middle of a stream', async () => {
    const { openai } = await open(async function* () {
      yield usual[4]!
      throw new ToolwayError('TIMEOUT', 'The model has fallen silent.')
    })
    const stream = await openai.chat.completions.create({ model: 'local', messages, stream: true })
    const read = async () => {
      for await (const _ of stream);
    }
    await expect(read()).rejects.toThrow('The model has fallen silent.')
  })

  test('does not retry once a tool has run', async () => {
    const { chat, baseURL, apiKey } = await open(async function* () {
      yield* usual.slice(0, 4)
      throw new ToolwayError('TIMEOUT', 'Late.')
    })
    const eager = new OpenAI({ baseURL, apiKey, maxRetries: 5 })
    await expect(eager.chat.completions.create({ model: 'local', messages })).rejects.toThrow('Late.')
    expect(chat.asked).toHaveLength(1)
  })

  test('stops the answer by its own means', async () => {
    const { openai, chat } = await open(async function* ({ signal }) {
      yield usual[4]!
      await aborted(signal)
    })
    const stream = await openai.chat.completions.create({ model: 'local', messages, stream: true })
    for await (const { choices } of stream) if (choices[0]?.delta.content) break
    await expect.poll(() => chat.open).toBe(0)
    expect(chat.asked[0]?.signal.aborted).toBe(true)
  })
})

describe('S6: the Vercel ai package, unchanged', () => {
  const tools = {
    weather: tool({
      description: 'Tells the weather',
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `sunny in ${city}`,
    }),
  }

  test('asks, and is answered', async () => {
    const { model } = await open()
    const { text, usage, finishReason } = await generateText({ model, prompt: 'Hi', system: 'Be brief.' })
    expect([text, usage.totalTokens, finishReason]).toEqual(['Hello wörld', 16, 'stop'])
  })

  test('streams, reads past what it does not know, and shows thoughts', async () => {
    const { model, chat } = await open(() => [{ kind: 'thinking', text: 'Hm.' }, ...usual])
    const result = streamText({ model, prompt: 'Hi' })
    const kinds = new Set<string>()
    for await (const { type } of result.fullStream) kinds.add(type)
    expect(await result.text).toBe('Hello wörld')
    expect(await result.reasoningText).toBe('Hm.')
    expect((await result.usage).totalTokens).toBe(16)
    expect(kinds.has('error')).toBe(false)
    expect(chat.asked[0]?.stream).toBe(true)
  })

  test('runs its own tools, streaming or not', async () => {
    const { model, chat } = await open(roundTrip)
    const options = { model, tools, prompt: 'Weather?', stopWhen: stepCountIs(3) }
    expect((await generateText(options)).text).toBe('It is sunny in Oslo.')
    expect(await streamText(options).text).toBe('It is sunny in Oslo.')
    expect(chat.asked[0]?.tools).toMatchObject([{ name: 'weather', parameters: { required: ['city'] } }])
  })

  test('meets errors with their status and sentence', async () => {
    const { model, chat } = await open(rateLimited)
    const failure = await generateText({ model, prompt: 'Hi', maxRetries: 0 }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(APICallError)
    expect(failure).toMatchObject({ statusCode: 429, message: 'Slow down.', isRetryable: true })
    chat.script = async function* () {
      yield usual[4]!
      throw new ToolwayError('TIMEOUT', 'The model has fallen silent.')
    }
    const errors: unknown[] = []
    const result = streamText({ model, prompt: 'Hi', onError: ({ error }) => void errors.push(error) })
    for await (const _ of result.fullStream);
    expect(JSON.stringify(errors)).toContain('fallen silent')
  })
})
