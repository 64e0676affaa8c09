import { expect, test } from 'vitest'
import type { Decide } from '../../core/decision.ts'
import { bodyOf, createTestGateway, refusalOf } from '../access.fixture.ts'
import { echo } from '../tools.fixture.ts'

const lines = Array.from({ length: 100 }, (_, id) => `line ${id}`).join('\n')
const structured = '{"rows":[{"id":12345678901234567890},{"id":2}],"note":"a\\nb"}'
const emoji = '😀'.repeat(10)

const bodies: Readonly<Record<string, string>> = {
  text: JSON.stringify({
    content: [
      { type: 'text', text: lines },
      { type: 'image', data: '' },
    ],
  }),
  json: `{"structuredContent":${structured}}`,
  both: `{"content":[{"type":"text","text":"A summary"}],"structuredContent":${structured}}`,
  emoji: JSON.stringify({ content: [{ type: 'text', text: emoji }] }),
}

function openGateway(decide: Decide = () => ({ allowed: true, rule: 'all' })) {
  const find = (_: unknown, handle: string) => {
    const body = bodies[handle]
    return body === undefined ? undefined : { server: 'files', tool: 'read', bytes: Buffer.from(body) }
  }
  const results = {
    store: { keep: () => undefined, find },
    keepMs: 600_000,
    decide,
    maxTokens: () => 100,
    compilePattern: async (source: string) =>
      source === '(' ? undefined : (text: string) => new RegExp(source).test(text),
  }
  const gateway = createTestGateway({ servers: { files: [echo('read')] }, meta: { results } })
  const read = async (handle: string, args: object = {}) => {
    const { content = [], _meta } = bodyOf(await gateway.ask('read_result', { handle, ...args }))
    return { texts: content.map(({ text }) => text), told: _meta?.['dev.toolway/result'] }
  }
  return { ...gateway, read }
}

test('W7: read_result returns characters from an offset, and at most what the limit allows', async () => {
  const { read } = openGateway()
  const first = await read('text')
  expect(first.texts).toEqual([lines.slice(0, 200), `Characters 0 to 200 of ${lines.length}. The next offset is 200.`])
  expect(first.told).toEqual({ handle: 'text', offset: 0, end: 200, characters: lines.length })
  expect((await read('text', { offset: 5, limit: 10 })).texts[0]).toBe(lines.slice(5, 15))
  expect((await read('text', { offset: 10_000 })).texts[0]).toBe('')
})

test('W7: read_result never cuts a character', async () => {
  const { read } = openGateway()
  expect((await read('emoji', { offset: 1, limit: 1 })).texts[0]).toBe('😀')
  expect((await read('emoji', { limit: 3 })).texts[0]).toBe('😀😀')
})

test('W7: read_result returns the lines that match a pattern', async () => {
  const { texts } = await openGateway().read('text', { pattern: '^line 9[89]$' })
  expect(texts).toEqual(['line 98\nline 99', '2 of 100 lines match.'])
})

test('W7: read_result returns the exact JSON at a path, and text for a string', async () => {
  const { read } = openGateway()
  expect((await read('json')).texts).toEqual([structured])
  expect((await read('json', { path: '$.rows[0].id' })).texts).toEqual(['12345678901234567890'])
  expect((await read('both', { path: '/rows' })).texts).toEqual(['[{"id":12345678901234567890},{"id":2}]'])
  expect((await read('both', { path: '$.note' })).texts).toEqual(['a\nb'])
})

test.each([
  ['other', {}, 'There is no result "other"'],
  ['json', { path: '$.missing' }, 'no JSON value at "$.missing"'],
  ['json', { path: 'rows' }, 'Invalid path'],
  ['json', { pattern: '(' }, 'Unsupported pattern "("'],
])('W7: read_result refuses %s with %j', async (handle, args, message) => {
  const { ask } = openGateway()
  expect((await refusalOf(ask('read_result', { handle, ...args }))).message).toContain(message)
})

test('W7: a caller that may not use the tool any more cannot read its result', async () => {
  const { ask } = openGateway(() => ({ allowed: false, code: 'TOOL_BLOCKED', rule: 'r', reason: 'Blocked.' }))
  expect(await refusalOf(ask('read_result', { handle: 'text' }))).toMatchObject({
    code: 'TOOL_BLOCKED',
    message: 'Blocked.',
  })
})
