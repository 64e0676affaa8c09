import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ErrorCode, errorKinds } from '../core/errors.ts'
import { serverError } from './access.fixture.ts'
import { openTestServer } from './http/server.fixture.ts'

let server: Awaited<ReturnType<typeof openTestServer>>
let session: Awaited<ReturnType<typeof server.session>>
beforeAll(async () => {
  server = await openTestServer()
  session = await server.session()
})
afterAll(() => server[Symbol.asyncDispose]())

const codes = Object.keys(errorKinds) as ErrorCode[]
const malformed = codes.filter((code) => 'malformed' in errorKinds[code])

describe('E1: the form of errors', () => {
  test.each(codes.filter((code) => !malformed.includes(code)))(
    'a tool call that fails with %s is a result',
    async (code) => {
      const { result, error } = await session.ask('tools/call', { name: 'refuse', arguments: { code } })
      expect(error).toBeUndefined()
      expect(result).toEqual({
        content: [{ type: 'text', text: `refused with ${code}` }],
        isError: true,
        _meta: { 'dev.toolway/error': { code, server: 'files', rule: 'r[0]', retryAfterMs: 7 } },
      })
    },
  )

  test.each(malformed)('%s is a JSON-RPC error even for a tool call', async (code) => {
    const { error } = await session.ask('tools/call', { name: 'refuse', arguments: { code } })
    expect(error).toMatchObject({ code: -32602, data: { code } })
  })

  test("a refused resource or prompt is a JSON-RPC error with one of Toolway's numbers and the same object", async () => {
    const refused = {
      code: -31004,
      message: 'not for you',
      data: { code: 'DENIED_BY_POLICY', server: 'files', rule: 'r[0]' },
    }
    expect((await session.ask('resources/read', { uri: 'test://refused' })).error).toEqual(refused)
    expect((await session.ask('prompts/get', { name: 'refused' })).error).toEqual(refused)
  })

  test('an unknown tool or prompt is -32602 with its code, and a resource -32002, as in revisions up to 2025-11-25', async () => {
    for (const [method, params] of [
      ['tools/call', { name: 'nothing' }],
      ['resources/read', { uri: 'other://x' }],
      ['prompts/get', { name: 'nothing' }],
      ['completion/complete', { ref: { type: 'ref/prompt', name: 'nothing' }, argument: {} }],
    ] as const) {
      expect((await session.ask(method, params)).error).toMatchObject({
        code: method === 'resources/read' ? -32002 : -32602,
        data: { code: 'TOOL_NOT_FOUND' },
      })
    }
  })

  test.each([
    ['tools/call', { name: 7 }],
    ['tools/call', {}],
    ['tools/call', { name: 'echo', arguments: [1] }],
    ['tools/call', { name: 'echo', arguments: 'x' }],
    ['tools/call', { name: 'echo', _meta: 3 }],
    ['resources/read', {}],
    ['prompts/get', { name: 'greet', arguments: 1 }],
    ['completion/complete', { ref: { type: 'ref/other' }, argument: {} }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet' } }],
  ])('malformed params of %s are -32602: %j', async (method, params) => {
    const before = server.access.calls.length
    expect((await session.ask(method, params)).error?.code).toBe(-32602)
    expect(server.access.calls).toHaveLength(before)
  })

  test('an unknown method is -32601, also one that every object has', async () => {
    for (const method of ['tools/destroy', 'constructor', '__proto__', 'x'.repeat(10_000)]) {
      const { error } = await session.ask(method)
      expect(error?.code).toBe(-32601)
      expect(error?.message.length).toBeLessThan(200)
    }
  })

  test("T2: a server's own error reaches the caller unchanged, to the byte", async () => {
    const { body } = await session.send({ id: 3, method: 'tools/call', params: { name: 'server_error' } })
    expect(await body.text()).toBe(`{"jsonrpc":"2.0","id":3,"error":${serverError}}`)
  })

  test('an unexpected error is INTERNAL; its cause is only logged', async () => {
    const { result } = await session.ask('tools/call', { name: 'broken' })
    expect(result._meta).toEqual({ 'dev.toolway/error': { code: 'INTERNAL' } })
    expect(JSON.stringify(result)).not.toContain('secret')
    expect(server.log.lines.at(-1)).toMatchObject({ level: 'error', facts: { err: { message: 'secret detail' } } })
  })
})
