import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ToolwayError } from '../../../core/errors.ts'
import { failure, hello, patient } from '../model.fixture.ts'
import { collectAnswer, type Delta, type Model } from '../model.ts'
import { importLibrary } from './llama-library.ts'
import { missingLibrary, orWhy, type Running, running, startRandom } from './model.fixture.ts'
import { randomModel } from './random.fixture.ts'

// On other people's machines nothing is installed; where we test for all, silence would be a lie.
if (missingLibrary !== undefined && process.env.CI) {
  test('node-llama-cpp is installed', () => expect.fail(missingLibrary))
}

/** An answer that cannot end soon. */
const long = { name: 'long', schema: { type: 'string', minLength: 4000, maxLength: 4000 } }
/** One that can. */
const short = { name: 'short', schema: { type: 'string', maxLength: 3 } }

const ask = (
  model: Model,
  constraint: { name: string; schema: Readonly<Record<string, unknown>> } = short,
  signal = patient(),
) => collectAnswer(model.complete({ messages: hello, signal, constraint }))

test('S6: without node-llama-cpp, an error says what to install', async () => {
  const { model } = await running({ load: importLibrary })
  const thrown = await failure(ask(model))
  expect(thrown).toBeInstanceOf(ToolwayError)
  expect([thrown.code, thrown.message]).toEqual([
    'SERVER_UNAVAILABLE',
    expect.stringMatching(
      /^The model embedded needs node-llama-cpp.+npm install --omit=optional node-llama-cpp @node-llama-cpp\/\S+$/,
    ),
  ])
})

describe.skipIf(missingLibrary !== undefined)(`S6: a model file in process${orWhy}`, { timeout: 60_000 }, () => {
  let started: Running
  let model: Model
  beforeAll(async () => {
    started = await startRandom()
    model = started.model
  })
  afterAll(() => started[Symbol.asyncDispose]())

  test('streams text and counts tokens', async () => {
    const deltas: Delta[] = []
    const asked = { messages: hello, signal: patient(), maxTokens: 40, stream: true }
    for await (const delta of model.complete(asked)) deltas.push(delta)
    const texts = deltas.filter(({ kind }) => kind === 'text')
    expect(texts.length).toBeGreaterThan(5)
    expect(deltas.at(-1)).toMatchObject({ kind: 'end', usage: { completionTokens: expect.any(Number) } })
    const { usage } = deltas.at(-1) as { usage: { promptTokens: number; completionTokens: number } }
    expect(usage.completionTokens).toBeLessThanOrEqual(40)
    // Its vocabulary has a token for each character of the plain template.
    expect(usage.promptTokens).toBeGreaterThan('Hello?'.length)
    expect(started.log.lines.filter(({ message }) => message === 'model loaded')).toHaveLength(1)
  })

  test('stops at maxTokens and reports the cut', async () => {
    const { reason, usage, text } = await collectAnswer(
      model.complete({ messages: hello, signal: patient(), constraint: long, maxTokens: 20 }),
    )
    expect([reason, usage?.completionTokens]).toEqual(['length', 20])
    expect(text).toMatch(/^".{5}/)
  })

  test('uses the template of the model and separates thinking', async () => {
    const thought = "{% if m.role == 'assistant' %}<think></think>{% endif %}"
    const run = `<|{{ m.role }}|>${thought}{{ m.content }}<|end|>`
    const template = `{% for m in messages %}${run}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`
    const templated = await running({ weights: { template } })
    const [mine, other] = [await ask(templated.model), await ask(model)]
    expect(mine.usage?.promptTokens).not.toBe(other.usage?.promptTokens)
    // Sooner or later chance begins a thought.
    let thinking = ''
    const asked = { messages: hello, temperature: 2, maxTokens: 200 }
    for (let count = 0; thinking === '' && count < 100; count++) {
      const answer = await collectAnswer(templated.model.complete({ ...asked, signal: patient() }))
      thinking = answer.thinking
      expect(answer.text).not.toContain('<think>')
    }
    expect(thinking).not.toBe('')
  })

  test('tools are described in the prompt, and the answer is calls', async () => {
    const parameters = { type: 'object', properties: { city: { enum: ['Paris', 'Rome'] } }, required: ['city'] }
    const tools = [{ name: 'weather', parameters }]
    const { calls, reason, form } = await collectAnswer(
      model.complete({ messages: hello, signal: patient(), tools, toolChoice: 'required' }),
    )
    expect(calls[0]?.function).toEqual({
      name: 'weather',
      arguments: expect.stringMatching(/^\{"city":"(Paris|Rome)"\}$/),
    })
    expect([reason, form]).toEqual(['calls', undefined])
  })

  test('two requests at once are served one after the other', async () => {
    const order: string[] = []
    const listen = async (name: string) => {
      for await (const { kind } of model.complete({ messages: hello, signal: patient(), constraint: short })) {
        order.push(`${name} ${kind === 'end' ? kind : 'text'}`)
      }
    }
    await Promise.all([listen('first'), listen('second')])
    expect(order.indexOf('second text')).toBeGreaterThan(order.indexOf('first end'))
    expect(order.at(-1)).toBe('second end')
  })

  test('a cancelled answer ends at once, and the next one runs', async () => {
    const stop = new AbortController()
    const reason = new Error('enough')
    const cancelled = (async () => {
      for await (const { kind } of model.complete({ messages: hello, signal: stop.signal, constraint: long })) {
        if (kind === 'text') stop.abort(reason)
      }
    })()
    const next = ask(model)
    expect(await failure(cancelled)).toBe(reason)
    expect(await next).toMatchObject({ reason: 'stop' })
  })

  test('a grammar that no token fits fails only its answer', async () => {
    const unhandled: unknown[] = []
    const listen = (reason: unknown) => void unhandled.push(reason)
    process.on('unhandledRejection', listen)
    const own = await startRandom()
    try {
      // Its vocabulary has these bytes only as control tokens, which stand for no text.
      for (const schema of [{ const: 'é日' }, { type: 'string', pattern: '^[а-я]{3}$' }]) {
        const thrown = await failure(ask(own.model, { name: 'impossible', schema }))
        expect(thrown).toMatchObject({ code: 'SERVER_UNAVAILABLE', message: expect.stringContaining('grammar') })
        expect(await ask(own.model)).toMatchObject({ reason: 'stop' })
      }
    } finally {
      await own[Symbol.asyncDispose]()
      process.off('unhandledRejection', listen)
    }
    expect(unhandled).toEqual([])
  })

  test('the model stops when its reader stops', async () => {
    for await (const _ of model.complete({ messages: hello, signal: patient(), constraint: long })) break
    expect(await ask(model)).toMatchObject({ reason: 'stop' })
  })

  test('a waiting request can be cancelled', async () => {
    const [busy, stop] = [new AbortController(), new AbortController()]
    const first = failure(ask(model, long, busy.signal))
    const reason = new Error('no time')
    expect(await failure(ask(model, short, AbortSignal.abort(reason)))).toBe(reason)
    const second = ask(model, short, stop.signal)
    stop.abort(reason)
    expect(await failure(second)).toBe(reason)
    busy.abort(reason)
    expect(await first).toBe(reason)
  })

  test('B7: the number of waiting requests is limited', async () => {
    const stop = new AbortController()
    const waiting = Array.from({ length: 17 }, () => ask(model, long, stop.signal).catch(() => 'gone'))
    expect(await failure(ask(model))).toMatchObject({ code: 'OVERLOADED' })
    stop.abort()
    expect(await Promise.all(waiting)).toEqual(Array(17).fill('gone'))
    expect(await ask(model)).toMatchObject({ reason: 'stop' })
  })

  test('an answer has a timeout', async () => {
    const { model, clock } = await running({ timeout: 1000 })
    const slow = (async () => {
      for await (const _ of model.complete({ messages: hello, signal: patient(), constraint: long })) clock.advance(400)
    })()
    expect(await failure(slow)).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('within 1 s') })
    expect(await ask(model)).toMatchObject({ reason: 'stop' })
  })

  test('a conversation that is too long is refused with both numbers', async () => {
    const { model } = await running({ context: 256 })
    const messages = [{ role: 'user', content: 'much '.repeat(100) }] as const
    for (const constraint of [short, undefined]) {
      const asked = { messages, signal: patient() }
      const thrown = await failure(collectAnswer(model.complete(constraint ? { ...asked, constraint } : asked)))
      expect(thrown).toMatchObject({ code: 'INVALID_ARGUMENTS' })
      expect(thrown.message).toMatch(/has 5\d\d tokens, but the model embedded has a context of 256/)
    }
    expect(await ask(model)).toMatchObject({ reason: 'stop' })
  })

  test('an answer fills the context and no more', async () => {
    const { model } = await running({ context: 256 })
    for (const messages of [hello, [{ role: 'user', content: 'x'.repeat(100) }] as const]) {
      const { reason, usage } = await collectAnswer(model.complete({ messages, signal: patient(), constraint: long }))
      expect(reason).toBe('length')
      expect((usage?.promptTokens ?? 0) + (usage?.completionTokens ?? 0)).toBe(255)
    }
  })

  test('also without a grammar', async () => {
    const { model } = await running({ context: 256 })
    const messages = [{ role: 'user', content: 'x'.repeat(150) }] as const
    const reasons = new Set<string>()
    for (let count = 0; count < 20 && !reasons.has('length'); count++) {
      const { reason, usage } = await collectAnswer(model.complete({ messages, signal: patient() }))
      expect((usage?.promptTokens ?? 0) + (usage?.completionTokens ?? 0)).toBeLessThan(256)
      reasons.add(reason)
    }
    expect(reasons).toContain('length')
  })

  test('images and audio are refused', async () => {
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }] as const
    expect(await failure(collectAnswer(model.complete({ messages, signal: patient() })))).toMatchObject({
      code: 'INVALID_ARGUMENTS',
      message: expect.stringContaining('accepts only text'),
    })
  })

  test('closing ends running and waiting answers', async () => {
    const { model } = await running()
    const begun = Promise.withResolvers<void>()
    const answer = (async () => {
      for await (const _ of model.complete({ messages: hello, signal: patient(), constraint: long })) begun.resolve()
    })()
    const waiting = failure(ask(model))
    const stopped = failure(answer)
    await begun.promise
    await model[Symbol.asyncDispose]()
    const closed = { code: 'SERVER_UNAVAILABLE', message: expect.stringContaining('shutting down') }
    expect([await stopped, await waiting, await failure(ask(model))]).toMatchObject([closed, closed, closed])
  })

  test('an idle model is unloaded and loaded again', async () => {
    const { model, clock, log } = await running({ idle: 60_000 })
    const count = (message: string) => log.lines.filter((line) => line.message === message).length
    const [loaded, unloaded] = ['model loaded', 'idle model unloaded']
    await ask(model)
    await clock.pass(59_000)
    await ask(model)
    await clock.pass(59_000)
    expect([count(loaded), count(unloaded)]).toEqual([1, 0])
    await clock.pass(2_000)
    expect(await ask(model)).toMatchObject({ reason: 'stop' })
    expect([count(loaded), count(unloaded)]).toEqual([2, 1])
    expect(clock.pending).toBe(1)
  })
})

describe.skipIf(missingLibrary !== undefined)(
  `S6: a file that is not a model causes an error that says so${orWhy}`,
  { timeout: 60_000 },
  () => {
    test.each<readonly [string, (path: string) => string, Buffer | string | undefined, RegExp]>([
      ['one that is not there', (path) => `${path}.gone`, undefined, /\.gone .*\(ENOENT\).*models\.embedded\.path/],
      ['one of another kind', (path) => path, 'PK not a model', /is not a GGUF file/],
      ['an empty one', (path) => path, '', /is not a GGUF file/],
      [
        'half of one',
        (path) => path,
        randomModel().subarray(0, 60_000),
        /cannot be loaded .+ llama\.cpp says: .*corrupted or incomplete/,
      ],
      ['a folder', (path) => path.replace(/\/[^/]+$/, ''), undefined, /\(EISDIR\)/],
    ])('%s', async (_what, place, content, said) => {
      const { model, path } = await running({ at: place })
      if (content !== undefined) await writeFile(path, content)
      const thrown = await failure(ask(model))
      expect(thrown).toMatchObject({ code: 'SERVER_UNAVAILABLE', message: expect.stringMatching(said) })
      // Whoever puts the right file there need not start anew.
      await writeFile(path, randomModel())
      if (path === place(path)) expect(await ask(model)).toMatchObject({ reason: 'stop' })
    })

    test('a model larger than the free memory is refused', async () => {
      const few = await running({ free: () => 1000 })
      const some = await running({ free: () => 1024 ** 2, context: 32_768 })
      for (const { model } of [few, some]) {
        expect(await failure(ask(model))).toMatchObject({
          code: 'SERVER_UNAVAILABLE',
          message: expect.stringMatching(
            /needs [\d.]+ GiB of memory, but only 0\.0 GiB is free.+models\.embedded\.context/,
          ),
        })
      }
    })
  },
)
