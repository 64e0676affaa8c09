import { describe, expect, test } from 'vitest'
import { callOf } from '../../core/call.fixture.ts'
import { ownerOf } from '../../core/cluster.ts'
import { ServerError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { createSeal } from '../../lib/seal.ts'
import { askCaller, checkedInputRequests, isInputRequired, sealedResult, unsealedRest } from './input-required.ts'

const seal = createSeal('a secret for the test')
const question = { method: 'elicitation/create', params: { message: 'Who?' } }
const asking = (more: object) => Buffer.from(JSON.stringify({ resultType: 'input_required', ...more }))

test('B2: only the result type shows that a server needs input', () => {
  expect(isInputRequired(asking({}))).toBe(true)
  expect(isInputRequired(Buffer.from('{"content":[{"text":"\\"input_required\\""}],"resultType":"complete"}'))).toBe(
    false,
  )
  expect(isInputRequired(Buffer.from('{"structuredContent":{"resultType":"input_required"}}'))).toBe(false)
  expect(isInputRequired(Buffer.from('{"result\\u0054ype":"input\\u005frequired"}'))).toBe(true)
})

test('G3: a state is sealed for its caller and restored as the server wrote it', () => {
  const text = '{"resultType":"input_required", "requestState":"st\\u00e9te","big":12345678901234567890}'
  const sealed = sealedResult(Buffer.from(text), seal, 'me').bytes.toString()
  const { requestState } = JSON.parse(sealed)
  expect(sealed).toBe(text.replace('"st\\u00e9te"', JSON.stringify(requestState)))
  expect(unsealedRest({ requestState, inputResponses: { a: 1 } }, seal, 'me')).toEqual({
    requestState: 'stéte',
    inputResponses: { a: 1 },
  })
})

test('B10: a state that only one replica can use names it in front, and is restored without the name', () => {
  const { requestState } = sealedResult(asking({ requestState: 'a.b' }), seal, 'me', 'one').value
  expect(ownerOf(String(requestState))).toBe('one')
  expect(unsealedRest({ requestState }, seal, 'me', 'one')).toEqual({ requestState: 'a.b' })
  // Another process of the server may have given the same state to another caller.
  expect(() => unsealedRest({ requestState }, seal, 'me', 'other')).toThrow(ServerError)
  const anywhere = sealedResult(asking({ requestState: 'a.b' }), seal, 'me').value
  expect(ownerOf(String(anywhere.requestState))).toBe('')
})

test('G3: a state of another caller, or none of ours, is refused as the protocol wants it', () => {
  const { requestState } = sealedResult(asking({ requestState: 'x' }), seal, 'me').value
  for (const state of [requestState, 'x', `${requestState}-TAMPERED`, 5, null]) {
    let thrown: unknown
    try {
      unsealedRest({ requestState: state }, seal, 'somebody else')
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(ServerError)
    expect((thrown as ServerError).error.value).toMatchObject({
      code: -32602,
      data: { reason: 'invalid_request_state' },
    })
  }
})

test('B2: answers without a state, and results without one, are passed on unchanged', () => {
  expect(unsealedRest(undefined, seal, 'me')).toBeUndefined()
  const rest = { inputResponses: { user_name: 12345 } }
  expect(unsealedRest(rest, seal, 'me')).toBe(rest)
  const bytes = asking({ inputRequests: { a: question } })
  expect(sealedResult(bytes, seal, 'me').bytes).toBe(bytes)
})

test('B2: a caller that cannot come again is asked everything at once, and the exact state goes back', async () => {
  const asked: string[] = []
  const peer = {
    ...callOf().peer,
    ask: async (method: string, params: Json) => {
      asked.push(`${method} ${JSON.stringify(params.value)}`)
      return Json.of({ action: 'accept', content: { name: 'Ann' } })
    },
  }
  const bytes = asking({ inputRequests: { a: question, b: { method: 'roots/list' } }, requestState: 'exactly this' })
  const answer = { action: 'accept', content: { name: 'Ann' } }
  expect(await askCaller(bytes, callOf({ peer }))).toEqual({
    inputResponses: { a: answer, b: answer },
    requestState: 'exactly this',
  })
  expect(asked).toEqual(['elicitation/create {"message":"Who?"}', 'roots/list {}'])
})

describe('V1: input that a server asks for', () => {
  const able = callOf()
  const call = { ...able, caller: { ...able.caller, capabilities: { elicitation: {} } } }
  test.each([
    [{ a: { method: 'evil/method' } }, /evil\/method/],
    [{ a: question, b: { method: 'tools/call', params: {} } }, /tools\/call/],
    [{ a: {} }, /undefined/],
    [{ a: { method: 'roots/list' } }, /"roots"/],
    [{ a: { ...question, Method: 'roots/list' } }, /Method/],
    [{ a: { ...question, params: { message: 'a', MESSAGE: 'b' } } }, /MESSAGE/],
  ])('is refused: %j', (inputRequests, said) => {
    // The forwarded result also contains these words, so only an error counts.
    expect(() => checkedInputRequests(asking({ inputRequests }), call)).toThrow(said)
  })

  test('is passed on with what the protocol defines for it, byte by byte', () => {
    const bytes = asking({ inputRequests: { a: question }, requestState: 'x', later: 1 })
    expect(checkedInputRequests(bytes, call)).toBe(bytes)
    const more = asking({ inputRequests: { a: { ...question, more: 1, params: { message: 'Who?', extra: 1 } } } })
    expect(String(checkedInputRequests(more, call))).toBe(String(asking({ inputRequests: { a: question } })))
  })
})
