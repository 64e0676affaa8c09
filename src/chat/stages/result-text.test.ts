import { expect, test } from 'vitest'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import type { ChatMessage } from '../../core/chat.ts'
import { ServerError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { type ResultBody, resultOf } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { displayLine, truncateConversation, truncateText } from '../conversation.ts'
import { failureText, resultForModel } from './execute.ts'

test.each<readonly [string, ResultBody, string]>([
  [
    'texts',
    {
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    'a\nb',
  ],
  ['text before structured content', { content: [{ type: 'text', text: 'a' }], structuredContent: { b: 1 } }, 'a'],
  ['structured content alone', { structuredContent: { b: [1] } }, '{"b":[1]}'],
  [
    'structured content beside a picture',
    { content: [{ type: 'image', mimeType: 'image/png', data: 'AAAA' }], structuredContent: { b: 1 } },
    '{"b":1}\n[image, image/png, 3 bytes]',
  ],
  ['sound', { content: [{ type: 'audio', mimeType: 'audio/wav', data: 'AAAAAAAA' }] }, '[audio, audio/wav, 6 bytes]'],
  ['a resource', { content: [{ type: 'resource', resource: { uri: 'a:b', text: 'inside' } }] }, 'inside'],
  [
    'bytes of a resource',
    { content: [{ type: 'resource', resource: { uri: 'a:b', mimeType: 'x/y', blob: 'AAAA' } }] },
    '[resource a:b, x/y, 3 bytes]',
  ],
  ['a link', { content: [{ type: 'resource_link', uri: 'a:b', description: 'That.' }] }, '[resource a:b: That.]'],
  ['something new', { content: [{ type: 'hologram' }] }, '[content of type hologram]'],
  [
    'words that are none',
    {
      content: [
        { type: 'text', text: { toString: 1, valueOf: 1 } },
        { type: 'resource_link', uri: { toString: 1, valueOf: 1 } },
      ],
    },
    '{"toString":1,"valueOf":1}\n[resource {"toString":1,"valueOf":1}]',
  ],
  ['nothing', {}, '(The tool returned an empty result.)'],
  ['nonsense', { content: 'text' as never }, '(The tool returned an empty result.)'],
  ['a failure', { content: [{ type: 'text', text: 'no such file' }], isError: true }, 'Error: no such file'],
  ['a failure that says so', { content: [{ type: 'text', text: 'Error 7' }], isError: true }, 'Error 7'],
])('J5: the text that a model gets for %s', (_what, body, text) => {
  expect(resultForModel(resultOf(body), 1_000)).toBe(text)
})

test('V5: numbers of structured content reach the model exactly', () => {
  const body = Json.parse('{"structuredContent":{"id":1326954198812345679}}') as Json<ResultBody>
  expect(resultForModel({ body, isError: false }, 1_000)).toBe('{"id":1326954198812345679}')
})

test('J5: a long result is cut between characters, with a note', () => {
  const text = resultForModel(resultOf({ content: [{ type: 'text', text: '🌞'.repeat(100) }] }), 42)
  expect(text).toBe(`${'🌞'.repeat(10)}\n[Truncated: the first 40 of 400 bytes.]`)
  expect(truncateText('short', 15)).toBe('short')
})

test('T2: the error of a server is passed on, an internal error is not', () => {
  const theirs = new ServerError(Json.of({ code: -1, message: 'no such row' }))
  expect(failureText(theirs, silentLog, 't', 1_000)).toBe('Error: no such row')
  const log = createKeptLog()
  expect(failureText(new Error('password is x'), log, 't', 1_000)).not.toContain('password')
  expect(log.lines).toHaveLength(1)
})

test('S5: an error with a non-string or huge message is still a result', () => {
  const told = (message: unknown, most = 1_000) =>
    failureText(new ServerError(Json.of({ code: 1, message: message as string })), silentLog, 't', most)
  expect(told({ toString: 1, valueOf: 1 })).toBe('Error: {"toString":1,"valueOf":1}')
  expect(told(undefined)).toBe('Error: no reason given')
  expect(told('x'.repeat(1_000), 42)).toContain('first 42 of 1007 bytes')
})

test('a result preview is one line', () => {
  expect(displayLine('a\n\tb\u0000c')).toBe('a b c')
  expect(displayLine('x'.repeat(500))).toHaveLength(160)
})

test('J5: a conversation is bounded: the oldest results are shortened first, and no message is lost', () => {
  const result = (id: string): ChatMessage => ({ role: 'tool', tool_call_id: id, content: id.repeat(10_000) })
  const messages: ChatMessage[] = [{ role: 'user', content: 'q' }, ...['a', 'b', 'c'].map(result)]
  expect(truncateConversation(messages, 30_001)).toBe(messages)
  const sizes = (most: number) => truncateConversation(messages, most).map(({ content }) => (content as string).length)
  expect(sizes(29_000)).toEqual([1, expect.closeTo(1_080, -2), 10_000, 10_000])
  expect(sizes(13_000)).toEqual([1, expect.closeTo(1_080, -2), expect.closeTo(1_080, -2), 10_000])
  expect(truncateConversation(messages, 2_300).map(({ content }) => (content as string).slice(0, 8))).toEqual([
    'q',
    '[Omitted',
    'bbbbbbbb',
    'cccccccc',
  ])
  expect(truncateConversation(messages, 10)).toHaveLength(4)
})

test.each([
  { reasoning_content: 'r'.repeat(5_000) },
  { reasoning_details: [{ type: 'reasoning.text', text: 'r'.repeat(5_000) }] },
])('J5: the reasoning that is sent back counts as well', (reasoning) => {
  const messages: ChatMessage[] = [
    { role: 'assistant', content: null, ...reasoning },
    { role: 'tool', tool_call_id: 'a', content: 'a'.repeat(5_000) },
  ]
  expect(truncateConversation(messages, 8_000)[1]?.content?.length).toBeLessThan(2_000)
})
