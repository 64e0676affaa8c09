import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { callOf } from '../../core/call.fixture.ts'
import type { ChatEvent, ChatRequest } from '../../core/chat.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { aborted, call, createTestChat, endOf, result, usual } from '../../serve/openai/chat.fixture.ts'
import type { OptionsOf } from '../command-table.ts'
import { folder } from '../folder.fixture.ts'
import { recordedShell, type Surroundings, toolway } from '../kit.fixture.ts'
import { talk } from './chat.ts'

type Script = Parameters<typeof createTestChat>[0]

/** Talks with a scripted chat; where there is a terminal its keys are pressed by `press`. */
function start(
  script: Script,
  message: string | undefined,
  options: Partial<OptionsOf<'chat'>> = {},
  more: Surroundings = {},
) {
  const chat = createTestChat(script)
  const keys = Object.assign(new PassThrough(), { isTTY: true })
  const { shell, stdout, stderr } = recordedShell({ ...(more.columns !== undefined && { stdin: keys }), ...more })
  const { caller } = callOf()
  const gateway = { chat, localAs: (agent = 'default') => ({ ...caller, agent }) }
  const code = talk(shell, gateway, message, { tools: true, wait: 0, ...options })
  return {
    ...{ chat, code, stdout, stderr },
    press: (text: string) => void keys.write(text),
    async shows(text: string) {
      await expect.poll(stdout).toContain(text)
    },
    async tells(text: string) {
      await expect.poll(stderr).toContain(text)
    },
  }
}

const terminal = { columns: 80 }
const says = (text: string): ChatEvent => ({ kind: 'text', text })
const lastWords = ({ messages }: ChatRequest) => [says(`You said ${messages.at(-1)?.content}.`), endOf()]

describe('S6: toolway chat, one message', () => {
  test('the answer is on stdout, the tools that ran on stderr', async () => {
    const { code, stdout, stderr, chat } = start(() => usual, 'Hi', { agent: 'dev', mode: 'agent', only: ['files.*'] })
    expect(await code).toBeUndefined()
    expect(stdout()).toBe('Hello wörld\n')
    expect(stderr()).toBe('✓ files__read {"path":"/a"} 12 ms\n')
    expect(chat.asked[0]).toMatchObject({
      messages: [{ role: 'user', content: 'Hi' }],
      caller: { agent: 'dev', capabilities: {} },
      ...{ mode: 'agent', only: ['files.*'], stream: true },
    })
  })

  test('options reach the chat', async () => {
    const { code, chat } = start(() => usual, 'Hi', { model: 'large', tools: false, system: 'Be brief.' })
    await code
    expect(chat.asked[0]).toMatchObject({
      ...{ model: 'large', toolChoice: 'none' },
      messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }],
    })
  })

  test('failed tools, fallbacks and a truncated answer are noted on stderr', async () => {
    const { code, stderr } = start(
      () => [call('c1'), result('c1', 'no such\nfile', true), endOf({ reason: 'length', notes: ['Raw results.'] })],
      'Hi',
    )
    expect(await code).toBeUndefined()
    expect(stderr()).toBe(
      '✗ files__read {"path":"/a"} 12 ms no such file\nnote: The answer was cut off at the length limit.\nnote: Raw results.\n',
    )
  })

  test('--json gives one document, and with --stream one event a line', async () => {
    const document = start(() => usual, 'Hi', { json: true })
    await document.code
    expect(JSON.parse(document.stdout())).toEqual({
      id: document.chat.asked[0]?.id,
      content: 'Hello wörld',
      ...{ reason: 'stop', model: 'local', notes: [], usage: { promptTokens: 11, completionTokens: 5 } },
      calls: [
        {
          call: 'c1',
          name: 'files__read',
          server: 'files',
          arguments: { path: '/a' },
          isError: false,
          durationMs: 12,
          text: 'done',
        },
      ],
    })
    const events = start(() => usual, 'Hi', { json: true, stream: true })
    await events.code
    const lines = events.stdout().trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      usual.map((one) => ({ id: events.chat.asked[0]?.id, ...one })),
    )
    expect([document.stderr(), events.stderr()]).toEqual(['', ''])
  })

  test('security: control characters are removed for a terminal, a pipe gets every byte', async () => {
    const nasty = 'a\u001b[31mb\u001b]0;title\u0007c\u202ed\r\n'
    const script = () => [
      call('\u001b[2J', 'na\u001bme'),
      result('\u001b[2J', 'x\u001b[0m', true),
      says(nasty),
      endOf(),
    ]
    const shown = start(script, 'Hi', {}, terminal)
    await shown.code
    expect(shown.stdout()).toBe('abcd\n')
    expect(shown.stderr().replace(/\u001b\[(2K|\d+m)/g, '')).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/)
    const piped = start(script, 'Hi')
    await piped.code
    expect(piped.stdout()).toBe(nasty)
  })

  test('a surrogate pair that is split over two pieces stays whole', async () => {
    const { code, stdout } = start(() => [says('\ud83d'), says('\ude00'), endOf()], 'Hi')
    await code
    expect(stdout()).toBe('😀\n')
  })

  test('an interrupt stops the answer and ends the command', async () => {
    const leaving = new AbortController()
    const { code, chat, stdout } = start(
      async function* ({ signal }) {
        yield says('Hel')
        leaving.abort(new ToolwayError('CANCELLED', 'Interrupted.'))
        await aborted(signal)
      },
      'Hi',
      {},
      { interrupted: leaving.signal },
    )
    await expect(code).rejects.toMatchObject({ code: 'CANCELLED' })
    expect([stdout(), chat.open]).toEqual(['Hel\n', 0])
  })

  test('an unknown model is an error that lists the models', async () => {
    await expect(start(() => usual, 'Hi', { model: 'locl' }).code).rejects.toMatchObject({
      message: 'There is no model "locl"; did you mean "local"?',
      hint: expect.stringContaining('local, large'),
    })
  })
})

describe('S6: toolway chat, a conversation', () => {
  test('continues with earlier messages until /exit', async () => {
    const { code, chat, press, shows } = start(lastWords, undefined, { system: 'Be brief.' }, terminal)
    press('one\r')
    await shows('You said one.')
    press('two\r')
    await shows('You said two.')
    press('/new\r')
    press('three\r')
    await shows('You said three.')
    press('/exit\r')
    expect(await code).toBeUndefined()
    const system = { role: 'system', content: 'Be brief.' }
    expect(chat.asked.map(({ messages }) => messages)).toEqual([
      [system, { role: 'user', content: 'one' }],
      [
        system,
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'You said one.' },
        { role: 'user', content: 'two' },
      ],
      [system, { role: 'user', content: 'three' }],
    ])
  })

  test('Ctrl-C stops the answer, or quits if there is none', async () => {
    const { code, press, shows, tells, chat } = start(
      async function* ({ signal, messages }) {
        yield says(`Begun ${messages.length}`)
        await aborted(signal)
      },
      undefined,
      {},
      terminal,
    )
    press('one\r')
    await shows('Begun 1')
    press('\u0003')
    await tells('Stopped.')
    expect(chat.open).toBe(0)
    press('two\r')
    await expect.poll(() => chat.asked.length).toBe(2)
    press('\u0003')
    await expect.poll(() => chat.open).toBe(0)
    press('\u0003')
    expect(await code).toBeUndefined()
    expect(chat.asked[1]?.messages).toEqual([{ role: 'user', content: 'two' }])
  })

  test('an error does not end it', async () => {
    const { code, chat, press, shows, tells } = start(
      async function* () {
        yield* [] as ChatEvent[]
        throw new ToolwayError('SERVER_UNAVAILABLE', 'The model cannot be reached.')
      },
      undefined,
      {},
      terminal,
    )
    press('one\r')
    await tells('The model cannot be reached.')
    chat.script = lastWords
    press('two\r')
    await shows('You said two.')
    press('\u0004')
    expect(await code).toBeUndefined()
  })

  test('SIGTERM ends it', async () => {
    const leaving = new AbortController()
    const { code, tells } = start(lastWords, undefined, {}, { ...terminal, interrupted: leaving.signal })
    await tells('Ctrl+C')
    leaving.abort(new ToolwayError('CANCELLED', 'Interrupted.'))
    await expect(code).rejects.toMatchObject({ code: 'CANCELLED' })
  })
})

describe('approval', () => {
  const schema = { type: 'object', properties: { approve: { type: 'boolean' } } }
  const asks = (params: object): Script =>
    async function* ({ peer, signal }) {
      const answers = await Promise.allSettled(
        [1, 2].map(() => peer.ask('elicitation/create', Json.of(params), signal)),
      )
      const told = answers.map((one) => (one.status === 'fulfilled' ? one.value.value : one.reason.code))
      yield says(JSON.stringify(told))
      yield endOf()
    }
  const question = { message: 'Allow\u001b[2J write?', requestedSchema: schema }

  test.each(['a message', undefined])(
    'is asked for at the terminal, one question at a time, with %s',
    async (message) => {
      const { chat, press, shows, tells, code } = start(asks(question), message, {}, terminal)
      if (message === undefined) press('go\r')
      await tells('Allow write? [y/N]')
      press('y\r')
      await expect.poll(() => chat.asked[0]?.caller.capabilities).toEqual({ elicitation: {} })
      press('nope\r')
      await shows('[{"action":"accept","content":{"approve":true}},{"action":"decline"}]')
      if (message === undefined) press('\u0004')
      expect(await code).toBeUndefined()
    },
  )

  test('is refused without a terminal, and for forms', async () => {
    const { code, stdout, chat } = start(asks(question), 'Hi')
    await code
    expect(stdout()).toBe('["INVALID_ARGUMENTS","INVALID_ARGUMENTS"]\n')
    expect(chat.asked[0]?.caller.capabilities).toEqual({})
    const form = {
      message: 'Your name?',
      requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
    }
    const asked = start(asks(form), 'Hi', {}, terminal)
    await asked.code
    expect(asked.stdout()).toBe('[{"action":"decline"},{"action":"decline"}]\n')
  })
})

describe('B11: the command line', () => {
  test('without a model the error says how to add one, in JSON too', async () => {
    await using place = await folder()
    const { code, stderr, stdout } = await toolway(['chat', 'Hi'], place)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/No model is configured\.\n.*models.*chat\.model/)
    const json = await toolway(['chat', '--json'], { ...place, input: 'Hi' })
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: 'USAGE' } })
  })

  test('an empty message and an unknown mode are usage errors', async () => {
    const empty = await toolway(['chat'], { input: ' \n' })
    expect([empty.code, empty.stderr]).toMatchObject([2, expect.stringContaining('message')])
    expect((await toolway(['chat', 'Hi', '--mode', 'fast'])).code).toBe(2)
    const keys = Object.assign(new PassThrough(), { isTTY: true })
    expect((await toolway(['chat', '--json'], { stdin: keys, columns: 80 })).stdout).toContain('--json needs a message')
  })
})
