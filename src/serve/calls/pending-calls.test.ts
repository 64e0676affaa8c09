import { afterEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { Budget, createBudgets } from '../../core/limits/budget.ts'
import { Json } from '../../json/json.ts'
import { type Answer, events } from '../http/server.fixture.ts'
import { type Asked, openStatelessServer, type Sending } from '../mcp-stateless/stateless.fixture.ts'
import { PendingCalls, ResumableCall } from './resumable-call.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

const openServer = async (settings?: Parameters<typeof openStatelessServer>[0]) =>
  open.use(await openStatelessServer(settings))
const everything = { elicitation: {}, sampling: {}, roots: { listChanged: true } }
const capable = { capabilities: everything }
const roots: Asked = { method: 'roots/list' }
const name: Asked = { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: { type: 'object' } } }
const sample: Asked = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }

type TestServer = Awaited<ReturnType<typeof openServer>>

const asking = (questions: readonly Asked[], tool = 'ask_all') => ({ name: tool, arguments: { questions } })

async function retry(server: TestServer, params: object, state: string, inputResponses: object, sending: Sending = {}) {
  return server.ask('tools/call', { ...params, requestState: state, inputResponses }, { id: 2, ...capable, ...sending })
}

describe('B2: a server asks the caller of the stateless era in mid-call', () => {
  test('the call is answered with the question, and its answer finds the way back to the open call', async () => {
    const server = await openServer()
    const params = asking([name])
    const { status, result } = await server.ask('tools/call', params, capable)
    expect(status).toBe(200)
    expect(result).toEqual({
      resultType: 'input_required',
      inputRequests: { q1: name },
      requestState: expect.stringMatching(/^toolway-call\./),
    })
    const accepted = { action: 'accept', content: { name: 'Ann' } }
    const done = await retry(server, params, result.requestState, { q1: accepted, other: {} })
    expect(done.id).toBe(2)
    expect(JSON.parse(done.result.content[0].text)).toEqual([accepted])
    expect(done.result.resultType).toBe('complete')
    expect(server.access.calls).toHaveLength(1)
  })

  test('simultaneous questions are sent in one response; missing and invalid answers are requested again, under a new state', async () => {
    const server = await openServer()
    const params = asking([name, sample, roots])
    const first = (await server.ask('tools/call', params, capable)).result
    expect(first.inputRequests).toEqual({ q1: name, q2: sample, q3: { ...roots, params: {} } })
    const wrong = { q1: 12345, q2: { method: 'x', result: {} }, q3: { roots: [] } }
    const second = (await retry(server, params, first.requestState, wrong)).result
    expect(Object.keys(second.inputRequests)).toEqual(['q1', 'q2'])
    expect(second.requestState).not.toBe(first.requestState)
    const third = (await retry(server, params, second.requestState, { q2: { role: 'assistant' } })).result
    expect(Object.keys(third.inputRequests)).toEqual(['q1'])
    const { result } = await retry(server, params, third.requestState, { q1: { action: 'decline' } })
    expect(JSON.parse(result.content[0].text)).toEqual([{ action: 'decline' }, { role: 'assistant' }, { roots: [] }])
  })

  test('one question may follow another, and each key is used once', async () => {
    const server = await openServer()
    const params = asking([roots, name], 'ask_in_turn')
    const first = (await server.ask('tools/call', params, capable)).result
    const second = (await retry(server, params, first.requestState, { q1: { roots: [] } })).result
    expect(second.inputRequests).toEqual({ q2: name })
    const { result } = await retry(server, params, second.requestState, { q1: {}, q2: { action: 'cancel' } })
    expect(JSON.parse(result.content[0].text)).toEqual([{ roots: [] }, { action: 'cancel' }])
  })

  test('prompts can ask in the same way', async () => {
    const server = await openServer()
    const params = { name: 'ask_prompt' }
    const first = (await server.ask('prompts/get', params, capable)).result
    const inputResponses = { q1: { roots: [] } }
    const { result } = await server.ask('prompts/get', { ...params, ...first, inputResponses }, capable)
    expect(result.messages[0].content.text).toBe('{"roots":[]}')
  })

  test('each request has its own progress token and log level; messages in between are kept for the next one', async () => {
    const server = await openServer()
    const params = { name: 'chat_while_away', arguments: {} }
    const first = await server.ask('tools/call', params, { ...capable, progressToken: 'one', logLevel: 'debug' })
    const { requestState } = first.result
    // The tool has said all that it says, and waits for the answer.
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
    const again = { ...params, requestState, inputResponses: { q1: { roots: [] } } }
    const { body } = await server.post('tools/call', again, { ...capable, progressToken: 'two', logLevel: 'info' })
    const heard = await Array.fromAsync(events(body))
    expect(heard.map(({ params, result }) => params?.progressToken ?? params?.data ?? result.content[0].text)).toEqual([
      'two',
      'away',
      'back',
    ])
  })

  test('progress and messages before a question come before it, on its stream', async () => {
    const server = await openServer()
    const { body } = await server.post('tools/call', asking([roots], 'ask_in_turn'), {
      ...capable,
      progressToken: 1,
      logLevel: 'info',
    })
    const heard = await Array.fromAsync(events(body))
    expect(heard.map(({ method, result }) => method ?? result.resultType)).toEqual([
      'notifications/progress',
      'notifications/message',
      'input_required',
    ])
  })

  test('an outcome that arrives between two requests is kept for the next one', async () => {
    const server = await openServer()
    const params = { name: 'withdraw' }
    const { result } = await server.ask('tools/call', params, capable)
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
    const done = await retry(server, params, result.requestState, {})
    expect(done.result.content[0].text).toBe('withdrawn')
  })

  test('a failure after the answer is the answer to the retry', async () => {
    const server = await openServer()
    const params = { name: 'ask_then_fail' }
    const { result } = await server.ask('tools/call', params, capable)
    const { error } = await retry(server, params, result.requestState, { q1: { roots: [] } })
    expect(error).toEqual({ code: -32020, message: 'of another hop' })
  })
})

describe('B2: resuming a call', () => {
  const invalid = { status: 200, error: { code: -32602, data: { reason: 'invalid_request_state' } } }
  const answers = { q1: { roots: [] } }

  test('G3: two callers at once, each with its own question and its own answer', async () => {
    const server = await openServer({ people: true })
    const people = ['anna', 'bert'].map((who) => ({ who, headers: { authorization: `Bearer ${who}-token` } }))
    const rounds = people.flatMap(({ who, headers }) =>
      Array.from({ length: 6 }, (_, number) => ({ who, headers, number })),
    )
    const heard = await Promise.all(
      rounds.map(async ({ who, headers, number }) => {
        const params = asking([{ method: 'elicitation/create', params: { message: `${who} ${number}` } }])
        const { result } = await server.ask('tools/call', params, { ...capable, headers })
        const content = { said: result.inputRequests.q1.params.message }
        const done = await retry(
          server,
          params,
          result.requestState,
          { q1: { action: 'accept', content } },
          { headers },
        )
        return JSON.parse(done.result.content[0].text)[0].content.said
      }),
    )
    expect(heard).toEqual(rounds.map(({ who, number }) => `${who} ${number}`))
  })

  test('W1: only the caller of the same request with an unchanged state can resume it, and only once', async () => {
    const server = await openServer({ people: true })
    const anna = { headers: { authorization: 'Bearer anna-token' } }
    const bert = { headers: { authorization: 'Bearer bert-token' } }
    const params = asking([roots])
    const { requestState } = (await server.ask('tools/call', params, { ...capable, ...anna })).result
    expect(await retry(server, params, requestState, answers, bert)).toMatchObject(invalid)
    const otherAgent = { headers: { ...anna.headers, 'toolway-agent': 'other' } }
    expect(await retry(server, params, requestState, answers, otherAgent)).toMatchObject(invalid)
    expect(await retry(server, { name: 'echo' }, requestState, answers, anna)).toMatchObject(invalid)
    const prompt = { name: 'ask_all', requestState, inputResponses: answers }
    expect(await server.ask('prompts/get', prompt, { ...capable, ...anna })).toMatchObject(invalid)
    for (const tampered of [
      `${requestState}-TAMPERED`,
      `${requestState}x`,
      requestState.slice(0, -1),
      'toolway-call.é',
    ]) {
      expect(await retry(server, params, tampered, answers, anna)).toMatchObject(invalid)
    }
    const done = await retry(server, params, requestState, answers, anna)
    expect(done.result.content[0].text).toBe('[{"roots":[]}]')
    expect(await retry(server, params, requestState, answers, anna)).toMatchObject(invalid)
  })

  test('a state of an earlier round is refused', async () => {
    const server = await openServer()
    const params = asking([roots, roots])
    const first = (await server.ask('tools/call', params, capable)).result
    const second = (await retry(server, params, first.requestState, answers)).result
    expect(await retry(server, params, first.requestState, { q2: {} })).toMatchObject(invalid)
    const { result } = await retry(server, params, second.requestState, { q2: { roots: [1] } })
    expect(JSON.parse(result.content[0].text)).toEqual([{ roots: [] }, { roots: [1] }])
  })

  test('not after ten minutes, when the call is cancelled', async () => {
    const server = await openServer()
    const { clock, access } = server
    const params = asking([roots])
    const before = clock.pending
    const { requestState } = (await server.ask('tools/call', params, capable)).result
    clock.advance(599_999)
    expect(access.calls[0]?.signal.aborted).toBe(false)
    clock.advance(1)
    expect(access.calls[0]?.signal.aborted).toBe(true)
    expect(await retry(server, params, requestState, answers)).toMatchObject(invalid)
    expect(clock.pending).toBe(before)
  })

  test('a caller that goes away while it waits for the result cancels the call; one that is only away does not', async () => {
    const server = await openServer()
    const params = { name: 'ask_then_wait' }
    const { requestState } = (await server.ask('tools/call', params, capable)).result
    const [call] = server.access.calls
    expect(call?.signal.aborted).toBe(false)
    const aborting = new AbortController()
    const again = { ...params, requestState, inputResponses: answers }
    const gone = server.post('tools/call', again, { ...capable, signal: aborting.signal }).catch(() => {})
    // The retry has arrived when its state is worth nothing any more.
    await until(async () => (await retry(server, params, requestState, answers)).error, { what: 'the retry' })
    aborting.abort()
    await gone
    await until(() => call?.signal.aborted, { what: 'the cancellation' })
  })

  test('a server that closes cancels the calls that wait, and lets no others wait', async () => {
    const server = await openServer()
    await server.ask('tools/call', asking([roots]), capable)
    const later = server.ask('tools/call', { name: 'wait_then_ask' }, capable)
    await until(() => server.access.calls.length === 2, { what: 'the second call' })
    const closed = server.server[Symbol.asyncDispose]()
    expect(server.access.calls[0]?.signal.aborted).toBe(true)
    server.access.release()
    expect((await later).result.content[0].text).toContain('shutting down')
    await closed
  })

  test('pending calls are counted for each principal and for all, until they end', () => {
    const questions = new Budget('questions', { what: 'calls', limit: 2, perCaller: 1 })
    const parked = new PendingCalls(createManualClock(), { ...createBudgets(), questions })
    const begin = (principal: string) => {
      const leg = { id: 1, revision: '2026-07-28', capabilities: {}, logLevel: undefined, progressToken: 1 }
      const call = new ResumableCall({ ...leg, send: () => true }, () => {})
      parked.admit(call, { principal, agent: 'default', method: 'tools/call', name: 'x' }, 0, 0)
      return call
    }
    const anna = begin('anna')
    expect(() => begin('anna')).toThrow(expect.objectContaining({ code: 'OVERLOADED' }))
    begin('bert')
    expect(() => begin('carl')).toThrow(expect.objectContaining({ code: 'OVERLOADED' }))
    parked.forget(anna)
    begin('carl')
  })

  test('V6: the bytes of pending calls and of their questions are counted, until the calls end', () => {
    const { question_bytes, questions } = createBudgets()
    const parked = new PendingCalls(createManualClock(), { questions, question_bytes })
    const owner = { principal: 'anna', agent: 'default', method: 'tools/call', name: 'x' }
    const leg = { id: 1, revision: '2026-07-28', capabilities: {}, logLevel: undefined, progressToken: 1 }
    const begin = () => new ResumableCall({ ...leg, send: () => true }, () => {})
    const [first, second] = [begin(), begin()]
    const half = question_bytes.perCaller / 2
    parked.admit(first, owner, half, 100)
    parked.admit(first, owner, half, 200)
    expect([question_bytes.used, questions.used]).toEqual([half + 300, 1])
    expect(() => parked.admit(second, owner, half, 1)).toThrow(expect.objectContaining({ code: 'OVERLOADED' }))
    expect([question_bytes.used, questions.used]).toEqual([half + 300, 1])
    parked.forget(first)
    expect([question_bytes.used, questions.used]).toEqual([0, 0])
    parked.admit(second, owner, half, 1)
  })

  test('G3: a question that came through a call which ends meanwhile is still answered', async () => {
    const leg = { id: 1, revision: '2026-07-28', logLevel: undefined, progressToken: 1, send: () => true }
    const capabilities = { elicitation: {} }
    const call = new ResumableCall({ ...leg, capabilities }, () => {})
    const work = Promise.withResolvers<[Buffer]>()
    const asked = call.turn({ ...leg, capabilities })
    call.run(work.promise)
    const answer = call.ask('elicitation/create', Json.of({}), new AbortController().signal)
    expect(await asked).toMatchObject({ kind: 'asked' })
    work.resolve([Buffer.from('{}')])
    await work.promise
    expect(await call.turn({ ...leg, capabilities }, { q1: { action: 'accept' } })).toMatchObject({ kind: 'done' })
    expect((await answer).value).toEqual({ action: 'accept' })
  })

  test('pending calls are bounded, and the server gets an error with the reason', async () => {
    const server = await openServer()
    const waits = async () =>
      expect((await server.ask('tools/call', asking([roots]), capable)).result.resultType).toBe('input_required')
    for (let count = 0; count < 9; count++) await waits()
    const { questions } = server.budgets
    const { principal } = server.access.calls[0]!.caller
    expect(questions.usedBy(principal)).toBe(9)
    // As if 490 more of them waited.
    questions.claim(principal, 490)
    await waits()
    const { result } = await server.ask('tools/call', { name: 'ask_then_fail' }, capable)
    expect(result.content[0].text).toMatch(/^survived: .*500 calls/)
  })
})

describe('B2: what a client did not declare it is not asked for', () => {
  test.each<[Asked, object, object]>([
    [name, {}, { elicitation: { form: {} } }],
    [name, { elicitation: { url: {} } }, { elicitation: { form: {} } }],
    [{ ...name, params: { mode: 'url' } }, { elicitation: {} }, { elicitation: { url: {} } }],
    [sample, { elicitation: {} }, { sampling: {} }],
    [{ ...sample, params: { tools: [] } }, { sampling: {} }, { sampling: { tools: {} } }],
    [roots, { sampling: {} }, { roots: {} }],
  ])('%j', async (question, capabilities, requiredCapabilities) => {
    const server = await openServer()
    const answer = await server.ask('tools/call', asking([question]), { capabilities })
    expect(answer).toMatchObject({ status: 400, error: { code: -32021 } })
    expect(answer.error?.data).toEqual({ requiredCapabilities })
  })

  test('a tool that does without the answer is not cancelled, and its result counts', async () => {
    const server = await openServer()
    const { status, result } = await server.ask('tools/call', { name: 'ask_then_fail' }, { capabilities: {} })
    expect([status, result.content[0].text]).toEqual([200, expect.stringMatching(/^survived: .*roots/)])
    expect(server.access.calls[0]?.signal.aborted).toBe(false)
  })

  test('a result that reports the refused question as a failure becomes the error of the protocol', async () => {
    const server = await openServer()
    const answer = await server.ask('tools/call', { name: 'ask_or_report' }, { capabilities: {} })
    expect(answer).toMatchObject({ status: 400, error: { code: -32021 } })
  })

  test('F12: a call that continues without the answer and whose outcome is unknown says so', async () => {
    const server = await openServer()
    const answer = await server.ask('tools/call', { name: 'ask_then_break' }, { capabilities: {} })
    expect(answer).toMatchObject({ status: 200, result: { isError: true } })
    expect(JSON.stringify(answer.result)).toContain('OUTCOME_UNKNOWN')
  })

  test('F6: a call that runs other calls keeps its result if one of them asks a question', async () => {
    const server = await openServer()
    const answer = await server.ask('tools/call', { name: 'run_others' }, { capabilities: {} })
    expect(answer).toMatchObject({ status: 200, result: { isError: true } })
    expect(server.access.calls[0]?.signal.aborted).toBe(false)
  })

  test.each<[Asked, object]>([
    [name, { elicitation: {} }],
    [name, { elicitation: { form: {} } }],
    [{ ...name, params: { mode: 'url' } }, { elicitation: { url: {} } }],
    [{ ...sample, params: { toolChoice: {} } }, { sampling: { tools: {} } }],
  ])('%j is asked where it was declared', async (question, capabilities) => {
    const server = await openServer()
    const { result } = await server.ask('tools/call', asking([question]), { capabilities })
    expect(result.inputRequests.q1).toEqual(question)
  })

  test('a question that MCP does not define is an error for the server and is not sent to the client', async () => {
    const server = await openServer()
    const { result } = (await server.ask('tools/call', asking([{ method: 'ping' }]), capable)) as unknown as Answer
    expect(result).toMatchObject({ isError: true, _meta: { 'dev.toolway/error': { code: 'INVALID_ARGUMENTS' } } })
  })
})
