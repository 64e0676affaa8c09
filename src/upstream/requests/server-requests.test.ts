import { describe, expect, test } from 'vitest'
import type { Peer } from '../../core/call.ts'
import { UnsupportedRequest } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import type { Transport } from '../transports/transport.ts'
import { ServerRequests } from './server-requests.ts'

test('G3: a hundred questions that are answered at once all get their answers, however slowly the server takes them', async () => {
  const taken = Promise.withResolvers<void>()
  const told: unknown[] = []
  const send: Transport['send'] = ({ body }) => {
    told.push(JSON.parse(String(body)).id)
    return taken.promise
  }
  const questions = new ServerRequests({ send } as Transport, silentLog)
  const peer = { ask: async () => Json.of({ model: 'small' }) } as unknown as Peer
  const ids = [...Array(100).keys()]
  for (const id of ids) questions.answer({ id, method: 'sampling/createMessage', params: undefined }, () => [peer])
  await expect.poll(() => told).toEqual(ids)
  taken.resolve()
})

test('V6: open questions are bounded in bytes, and those beyond are refused until some are answered', async () => {
  const told: { id: unknown; error?: object }[] = []
  const send: Transport['send'] = async ({ body }) => void told.push(JSON.parse(String(body)))
  const questions = new ServerRequests({ send } as Transport, silentLog)
  const answers: ((answer: Json) => void)[] = []
  const peer = { ask: () => new Promise((resolve) => answers.push(resolve)) } as unknown as Peer
  const large = Buffer.from(`{"messages":[],"systemPrompt":"${'x'.repeat(6 * 1024 * 1024)}"}`)
  const ask = (id: string, params = large) =>
    questions.answer({ id, method: 'sampling/createMessage', params }, () => [peer])
  const first = ask('a')
  void ask('b')
  await ask('c')
  await ask('d'.repeat(6 * 1024 * 1024), Buffer.from('{}'))
  expect(answers).toHaveLength(2)
  expect(told).toMatchObject([{ id: 'c', error: { code: -32600 } }, { error: { code: -32600 } }])
  answers[0]?.(Json.of({}))
  await first
  void ask('e')
  expect(answers).toHaveLength(3)
})

test('V6: a single question may be as large as a message', () => {
  const questions = new ServerRequests({ send: async () => {} } as unknown as Transport, silentLog)
  let asked = 0
  const peer = { ask: () => new Promise(() => asked++) } as unknown as Peer
  const params = Buffer.from(`{"messages":[],"systemPrompt":"${'x'.repeat(17 * 1024 * 1024)}"}`)
  void questions.answer({ id: 1, method: 'sampling/createMessage', params }, () => [peer])
  expect(asked).toBe(1)
})

test('V6: the pauses by all open questions are bounded, however many calls may have caused each of them', async () => {
  const questions = new ServerRequests({ send: async () => {} } as unknown as Transport, silentLog)
  let paused = 0
  const suspect = {
    paused: async (work: (signal: AbortSignal) => Promise<Json>, signal: AbortSignal) => {
      paused++
      return await work(signal).finally(() => paused--)
    },
  } as unknown as Peer
  const suspects = Array.from({ length: 300 }, () => suspect)
  const peer = { ask: async (_method: string, _params: Json, signal: AbortSignal) => never(signal) } as unknown as Peer
  const ask = (id: number) =>
    questions.answer({ id, method: 'sampling/createMessage', params: undefined }, () => [peer], suspects)
  const asked = [...Array(20).keys()].map(ask)
  expect(paused).toBe(4_096)
  questions.cancelAll()
  await Promise.all(asked)
  expect(paused).toBe(0)
  void ask(20)
  expect(paused).toBe(300)
})

test('F10: a question that thousands of calls may have caused is asked', async () => {
  const questions = new ServerRequests({ send: async () => {} } as unknown as Transport, silentLog)
  const suspect = {
    paused: async (work: (signal: AbortSignal) => Promise<Json>, signal: AbortSignal) => await work(signal),
  } as unknown as Peer
  let asked = 0
  const peer = { ask: async () => Json.of({ asked: ++asked }) } as unknown as Peer
  const question = { id: 1, method: 'sampling/createMessage', params: undefined }
  await questions.answer(question, () => [peer], Array<Peer>(4_000).fill(suspect))
  expect(asked).toBe(1)
})

const never = (signal: AbortSignal) =>
  new Promise<Json>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

describe('V1: what a server asks of a client', () => {
  const asked = async (method: string, params: string | undefined, ask = async () => Json.of({ action: 'accept' })) => {
    const answer = Promise.withResolvers<Record<string, unknown>>()
    const forwarded: unknown[] = []
    const send: Transport['send'] = async ({ body }) => answer.resolve(JSON.parse(String(body)))
    const questions = new ServerRequests({ send } as Transport, silentLog)
    const peer = {
      ask(method: string, params: Json) {
        forwarded.push([method, String(params.bytes)])
        return ask()
      },
    } as unknown as Peer
    questions.answer({ id: 7, method, params: params === undefined ? undefined : Buffer.from(params) }, () => [peer])
    return { answer: await answer.promise, forwarded }
  }

  test.each([
    'evil/method',
    'tools/call',
    'initialize',
    '__proto__',
    'constructor',
    'Elicitation/create',
    'tasks/update',
  ])('%s is answered with -32601 and not forwarded', async (method) => {
    const { answer, forwarded } = await asked(method, '{}')
    expect(answer).toMatchObject({ id: 7, error: { code: -32601 } })
    expect(forwarded).toEqual([])
  })

  test('reaches the client with the members that the protocol defines', async () => {
    const { answer, forwarded } = await asked('elicitation/create', '{"message":"\\u0061", "later":1,"mode":"form"}')
    expect(forwarded).toEqual([['elicitation/create', '{"message":"\\u0061","mode":"form"}']])
    expect(answer).toMatchObject({ result: { action: 'accept' } })
  })

  test.each(['{"message":"a","Message":"b"}', '{"message":"a","message":"b"}', '{"_meta":{"PROGRESSTOKEN":1}}'])(
    'is refused where it can be read in two ways: %s',
    async (params) => {
      const { answer, forwarded } = await asked('elicitation/create', params)
      expect(answer).toMatchObject({ error: { code: -32602 } })
      expect(forwarded).toEqual([])
    },
  )

  test('is answered with -32601 where the client did not declare it', async () => {
    const refuse = () => Promise.reject(new UnsupportedRequest('not declared'))
    expect((await asked('roots/list', undefined, refuse)).answer).toMatchObject({ error: { code: -32601 } })
  })
})
