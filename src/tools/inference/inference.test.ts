import { describe, expect, test } from 'vitest'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { createModels } from '../../chat/models/create-models.ts'
import { modelsSection } from '../../config/schema/models.ts'
import { nativeSection } from '../../config/schema/native.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { bodyOf, refusalOf, runTool } from '../access.fixture.ts'
import type { Tool } from '../define.ts'
import { inferenceTools } from './index.ts'
import { answers, mp3, png, type Reply, says, scriptedServer, sends, wav } from './model-server.fixture.ts'
import type { InferenceOptions } from './options.ts'

const key = 'sk-secret-key-1234'

interface Setting extends Partial<InferenceOptions> {
  readonly written?: object
  readonly inference?: object
  readonly model?: string
}

/** The tools over models as they are configured, with the real models of the chat loop. */
function tools({ written = {}, inference = {}, model, ...more }: Setting): Record<string, Tool> {
  const models = modelsSection.parse(written)
  const native = nativeSection.parse({ inference })
  const made = inferenceTools({
    config: { models, chat: { model }, native },
    models: createModels(models, { clock: systemClock, log: silentLog }),
    vet: () => Promise.reject(new Error('leads to a private or reserved address')),
    clock: systemClock,
    log: silentLog,
    ...more,
  })
  return Object.fromEntries(made.map((tool) => [tool.name, tool]))
}

async function over(paths: Readonly<Record<string, Reply>>, setting: Setting = {}) {
  const server = await scriptedServer(paths)
  const written = { local: { kind: 'openai', baseUrl: server.baseUrl, model: 'm', apiKey: key }, ...setting.written }
  const made = tools({ ...setting, written })
  const run = async (name: string, args: object, extra = {}) => bodyOf(await runTool(made[name] as Tool, args, extra))
  return { ...server, run, tools: made, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

const openai = { kind: 'openai', baseUrl: 'http://127.0.0.1:9/v1', model: 'm' }
const gguf = { kind: 'gguf', path: '/nowhere.gguf' }

describe('inference tools', () => {
  test('F17: without a model there is no tool, and a model file only writes', () => {
    expect(Object.keys(tools({}))).toEqual([])
    expect(Object.keys(tools({ written: { a: { ...openai, disabled: true } } }))).toEqual([])
    expect(Object.keys(tools({ written: { a: gguf } }))).toEqual(['generate'])
    expect(Object.keys(tools({ written: { a: openai } }))).toEqual(['generate', 'vision', 'speech', 'diffusion'])
  })

  test('F17: a tool is left out where its model is named wrongly, and the log says so', () => {
    const log = createKeptLog()
    const made = tools({ written: { a: openai, b: gguf }, inference: { speech: 'nope', diffusion: 'b' }, log })
    expect(Object.keys(made)).toEqual(['generate', 'vision'])
    expect(log.lines.map(({ facts }) => facts.model)).toEqual(['nope', 'b'])
  })

  test.each([
    [{ inference: { generate: 'c' }, model: 'b' }, 'c'],
    [{ model: 'b' }, 'b'],
    [{}, 'a'],
    [{ model: 'nope' }, 'a'],
  ])('F17: with %j the usual model is %s', async (setting, name) => {
    await using server = await scriptedServer({ '/chat/completions': says('x') })
    const one = { ...openai, baseUrl: server.baseUrl }
    const made = tools({ ...setting, written: { a: one, b: one, c: one } })
    const { structuredContent } = bodyOf(await runTool(made.generate as Tool, { prompt: 'hi' }))
    expect(structuredContent).toMatchObject({ model: name })
    expect(made.generate?.definition.inputSchema).toMatchObject({
      properties: { model: { description: expect.stringContaining(`Which model: ${name}, `) } },
    })
  })

  test('F17: a model that is not there is refused with what there is', async () => {
    const made = tools({ written: { local: openai, other: openai } })
    const refusal = await refusalOf(runTool(made.generate as Tool, { prompt: 'x', model: 'locl' }))
    expect(refusal.message).toBe('There is no model "locl" for this; did you mean "local"?')
  })
})

describe('generate', () => {
  test('F17: a prompt goes to the model with what was wished for, and its answer comes back', async () => {
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

  test('F17: a conversation goes on; a prompt beside it, or neither, is refused', async () => {
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
    const { structuredContent } = await model.run('generate', { prompt: 'x', schema })
    expect(structuredContent).toMatchObject({ value: { a: 1 } })
    expect(model.asked[0]?.json.response_format).toMatchObject({ type: 'json_schema' })
  })

  test('F17: an answer that does not fit the schema is a failure that says why', async () => {
    await using model = await over({ '/chat/completions': says('Sorry, no.') })
    expect((await refusalOf(model.run('generate', { prompt: 'x', schema }))).message).toContain('is no JSON')
    const read = async () => ({ problem: 'lacks "a"' })
    await using strict = await over({ '/chat/completions': says('{}') }, { read })
    expect((await refusalOf(strict.run('generate', { prompt: 'x', schema }))).message).toContain('lacks "a"')
  })
})

describe('vision', () => {
  test('F17: images go to the model as data, whatever they are said to be', async () => {
    await using model = await over({ '/chat/completions': says('A cat.') })
    const data = png.toString('base64')
    const body = await model.run('vision', {
      prompt: 'What?',
      images: [{ data }, { data: `data:image/jpeg;base64,${data}` }],
    })
    expect(body.content).toEqual([{ type: 'text', text: 'A cat.' }])
    const url = `data:image/png;base64,${data}`
    expect(model.asked[0]?.json.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What?' },
          { type: 'image_url', image_url: { url } },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ])
  })

  test('F9: an image behind a URL is fetched here, from a vetted address', async () => {
    await using model = await over(
      {
        '/chat/completions': says('ok'),
        '/cat.png': sends('image/png', png),
        '/page': sends('text/html', Buffer.from('x')),
      },
      { vet: async (url) => ({ url: new URL(url), addresses: [{ address: '127.0.0.1', family: 4 }] }) },
    )
    await model.run('vision', { images: [{ url: `${model.origin}/cat.png` }] })
    expect(JSON.stringify(model.asked.at(-1)?.json)).toContain(`data:image/png;base64,${png.toString('base64')}`)
    for (const [path, why] of [
      ['/page', 'is no image'],
      ['/gone', 'HTTP 404'],
    ]) {
      const refusal = await refusalOf(model.run('vision', { images: [{ url: model.origin + path }] }))
      expect(refusal.message).toContain(why)
    }
  })

  test.each([
    ['a private address', { url: 'http://10.0.0.1/' }, 'UNSAFE_URL'],
    ['no base64', { data: '§' }, 'INVALID_ARGUMENTS'],
    ['no image', { data: wav.toString('base64') }, 'INVALID_ARGUMENTS'],
    ['too much', { data: Buffer.alloc(2_000).toString('base64') }, 'INVALID_ARGUMENTS'],
    ['nothing', {}, 'INVALID_ARGUMENTS'],
    ['both', { url: 'https://example.com', data: '' }, 'INVALID_ARGUMENTS'],
  ])('F17: %s is refused before the model is asked', async (_, image, code) => {
    await using model = await over({}, { inference: { maxBytes: '1KiB' } })
    expect((await refusalOf(model.run('vision', { images: [image] }))).code).toBe(code)
    expect(model.asked).toEqual([])
  })
})

describe('speech', () => {
  test('F17: a text is spoken, and the type of the audio is read from its bytes', async () => {
    await using model = await over({ '/audio/speech': sends('application/octet-stream', mp3) })
    const body = await model.run('speech', { text: 'Hello', voice: 'echo', format: 'wav', speed: 1.5 })
    expect(body).toEqual({
      content: [{ type: 'audio', data: mp3.toString('base64'), mimeType: 'audio/mpeg' }],
      structuredContent: { model: 'local', mimeType: 'audio/mpeg', bytes: mp3.length },
    })
    const [asked] = model.asked
    expect(asked?.json).toEqual({ model: 'm', input: 'Hello', voice: 'echo', response_format: 'wav', speed: 1.5 })
    expect(asked?.headers.authorization).toBe(`Bearer ${key}`)
  })

  test('F17: a recording is written down, by the model that is named for it', async () => {
    await using writer = await scriptedServer({ '/audio/transcriptions': answers(200, { text: 'Hello you' }) })
    await using model = await over(
      {},
      {
        written: { writer: { kind: 'openai', baseUrl: `${writer.baseUrl}?v=2`, model: 'whisper' } },
        inference: { transcription: 'writer' },
      },
    )
    const body = await model.run('speech', { audio: wav.toString('base64'), language: 'en' })
    expect(body.content).toEqual([{ type: 'text', text: 'Hello you' }])
    expect(body.structuredContent).toEqual({ model: 'writer', text: 'Hello you' })
    const [asked] = writer.asked
    expect(asked?.path).toBe('/v1/audio/transcriptions?v=2')
    // Read by a parser that is not ours.
    const form = await new Response(new Uint8Array(asked?.body ?? []), {
      headers: { 'content-type': String(asked?.headers['content-type']) },
    }).formData()
    expect([form.get('model'), form.get('language'), form.get('response_format')]).toEqual(['whisper', 'en', 'json'])
    const file = form.get('file') as File
    expect([file.name, file.type, Buffer.from(await file.arrayBuffer())]).toEqual(['audio.wav', 'audio/wav', wav])
  })

  test('F17: something else than audio or text in the answer is told', async () => {
    await using model = await over({
      '/audio/speech': sends('text/html', Buffer.from('<p>')),
      '/audio/transcriptions': answers(200, { words: [] }),
    })
    expect((await refusalOf(model.run('speech', { text: 'x' }))).message).toContain('something else than audio')
    const audio = wav.toString('base64')
    expect((await refusalOf(model.run('speech', { audio }))).message).toContain('something else than a text')
    expect((await refusalOf(model.run('speech', { audio, text: 'x' }))).message).toContain('either "text"')
    expect((await refusalOf(model.run('speech', {}))).message).toContain('either "text"')
  })
})

describe('diffusion', () => {
  const image = { b64_json: png.toString('base64') }

  test('F17: images come as images', async () => {
    await using model = await over({ '/images/generations': answers(200, { data: [image, image] }) })
    const body = await model.run('diffusion', { prompt: 'a cat', n: 2, size: '64x64' })
    expect(body.content).toEqual(Array(2).fill({ type: 'image', data: image.b64_json, mimeType: 'image/png' }))
    expect(body.structuredContent).toEqual({
      model: 'local',
      images: Array(2).fill({ mimeType: 'image/png', bytes: png.length }),
    })
    const wishes = { model: 'm', prompt: 'a cat', n: 2, size: '64x64', response_format: 'b64_json' }
    expect(model.asked.map(({ json }) => json)).toEqual([wishes])
  })

  test('F17: a server that knows no response_format is asked without it', async () => {
    const picky: Reply = (asked, response) =>
      'response_format' in asked.json
        ? answers(400, { error: { message: "Unknown parameter: 'response_format'." } })(asked, response)
        : answers(200, { data: [image] })(asked, response)
    await using model = await over({ '/images/generations': picky })
    expect((await model.run('diffusion', { prompt: 'a cat' })).content).toHaveLength(1)
  })

  test('F9: an image that is pointed to is taken from the server itself, or vetted like any address', async () => {
    await using model = await over({
      '/images/generations': ({ json }, response) =>
        answers(200, { data: [{ url: json.prompt }] })(undefined as never, response),
      '/files/1.png': sends('image/png', png),
    })
    expect((await model.run('diffusion', { prompt: '/files/1.png' })).content).toHaveLength(1)
    expect((await refusalOf(model.run('diffusion', { prompt: 'http://169.254.169.254/x' }))).code).toBe('UNSAFE_URL')
    expect((await refusalOf(model.run('diffusion', { prompt: 'http://[' }))).message).toContain('else than images')
  })
})

describe('model servers that fail', () => {
  const failing = (status: number, message = '', headers = {}) =>
    over({ '/audio/speech': answers(status, { error: { message } }, headers) })

  test.each([
    [401, 'SERVER_UNAVAILABLE', 'models.local.apiKey'],
    [404, 'SERVER_UNAVAILABLE', 'native.inference.speech'],
    [302, 'SERVER_UNAVAILABLE', 'not followed'],
    [400, 'INVALID_ARGUMENTS', 'Change what you ask for. It says: bad voice'],
    [500, 'SERVER_UNAVAILABLE', 'Check its log. It says: bad voice'],
    [429, 'OVERLOADED', 'Try again later'],
  ])('F17: HTTP %i is told with what to do', async (status, code, words) => {
    await using model = await failing(status, 'bad\n voice', { location: 'http://127.0.0.1:9/' })
    const refusal = await refusalOf(model.run('speech', { text: 'x' }))
    expect(refusal).toMatchObject({ code, message: expect.stringContaining(words) })
    expect(model.asked).toHaveLength(1)
  })

  test('B6: the key is in no error, even when the server repeats it', async () => {
    for (const status of [400, 401, 500]) {
      await using model = await failing(status, `the key ${key} is wrong`)
      expect((await refusalOf(model.run('speech', { text: 'x' }))).message).not.toContain(key)
    }
  })

  test('F17: more than allowed is not taken', async () => {
    const large = Buffer.concat([mp3, Buffer.alloc(5_000)])
    await using model = await over({ '/audio/speech': sends('audio/mpeg', large) }, { inference: { maxBytes: '4KiB' } })
    expect((await refusalOf(model.run('speech', { text: 'x' }))).message).toContain('more than 4096 bytes')
  })

  test('F10: who stops waiting stops the server', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const stop = new AbortController()
    await using model = await over({
      '/audio/speech': (_asked, response) => {
        response.on('close', resolve)
        stop.abort(new Error('enough'))
      },
    })
    await expect(model.run('speech', { text: 'x' }, { signal: stop.signal })).rejects.toThrow('enough')
    await closed
  })

  test('F17: a server that is not there, or breaks off, is told as such', async () => {
    const made = tools({ written: { local: openai } })
    expect((await refusalOf(runTool(made.speech as Tool, { text: 'x' }))).message).toContain('models.local.baseUrl')
    await using model = await over({
      '/audio/speech': (_asked, response) => {
        response.writeHead(200, { 'content-type': 'audio/mpeg', 'content-length': '1000' }).write('ID3')
        setImmediate(() => response.socket?.destroy())
      },
    })
    expect((await refusalOf(model.run('speech', { text: 'x' }))).message).toContain('broke off')
  })
})
