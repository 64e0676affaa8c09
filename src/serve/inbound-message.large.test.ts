import { describe, expect, test } from 'vitest'
import { memberOf, readInbound } from './inbound-message.ts'

const text = 'x'.repeat(100_000)
const name = '"name":"echo"'
const requestWith = (params: string) => ({
  first: Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`),
  last: Buffer.from(`{"jsonrpc":"2.0","id":1,"params":${params},"method":"tools/call"}`),
})

describe('V5: a large request is read in the same way wherever its method is', () => {
  test.each([
    ['text', `{"message":"${text}"}`],
    ['exact numbers', `{"message":"${text}","count":1.50}`],
    ['numbers that a double rounds', `{"message":"${text}","count":12345678901234567890}`],
    ['spaces', ` { "message" : "${text}" } `],
  ])('with %s', (_, args) => {
    const { first, last } = requestWith(`{${name},"arguments":${args}}`)
    const read = [first, last].map((bytes) => {
      const message = readInbound(bytes)
      if (message.kind !== 'request') throw new Error(message.kind)
      const { id, method, params } = message
      const json = memberOf(message, 'arguments')
      return { id, method, params, bytes: String(json.bytes), exact: JSON.stringify(json.exact) }
    })
    expect(read[0]).toEqual(read[1])
    expect(read[0]).toMatchObject({ id: 1, method: 'tools/call', bytes: args.trim() })
  })

  test.each([
    ['a repeated key', `{${name},"arguments":{"a":1,"a":2,"message":"${text}"}}`],
    ['too many levels', `{${name},"arguments":${'['.repeat(300)}"${text}"${']'.repeat(300)}}`],
    ['params that are not an object', `["${text}"]`],
    ['incomplete JSON', `{"message":"${text}`],
    ['a line break inside a string', `{"message":"${text}\n"}`],
  ])('with %s, which is refused', (_, params) => {
    const { first, last } = requestWith(params)
    const read = readInbound(first)
    expect(read.kind).toBe('invalid')
    expect(read).toEqual(readInbound(last))
  })
})

test('V5: a large response that mentions a method is still a response', () => {
  const response = readInbound(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"method":"ping","text":"${text}"}}`))
  expect(response).toMatchObject({ kind: 'response', id: 1 })
})

test.each(['\n', '\r', '\r\n'])('E1: a request with %j inside a string is a parse error', (lineBreak) => {
  const { first } = requestWith(`{${name},"arguments":{"message":"one${lineBreak}two"}}`)
  expect(readInbound(first)).toMatchObject({ kind: 'invalid', id: null, code: -32700 })
})
