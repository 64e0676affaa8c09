import { expect, test } from 'vitest'
import { callOf, entryOf } from '../../core/call.fixture.ts'
import type { Call } from '../../core/call.ts'
import { type Result, type ResultBody, resultOf } from '../../core/result.ts'
import type { KeptResult } from '../../core/stores.ts'
import { Json } from '../../json/json.ts'
import { openPipeline } from '../pipeline.fixture.ts'
import { limitResults, type ResultStepOptions } from './limit-results.ts'

interface Changes extends Partial<Pick<ResultStepOptions, 'compact'>> {
  readonly call?: Partial<Call>
  readonly maxTokens?: number
  readonly accepts?: boolean
}

const optionsOf = ({ maxTokens = 500, compact = false, accepts = true }: Changes, kept: Map<string, KeptResult>) => ({
  limits: {
    ...{ isForAll: false, agents: new Map(), maxTokens, clients: new Map(), ofClient: () => 0 },
    of: () => maxTokens,
  },
  store: {
    keep: (_caller: unknown, handle: string, result: KeptResult) => void kept.set(handle, result),
    find: () => undefined,
  },
  keepMs: 600_000,
  compact,
  accepts: async () => accepts,
})

/** What a caller gets of a result, and what was kept. */
async function limit(body: ResultBody | Result, changes: Changes = {}) {
  const kept = new Map<string, KeptResult>()
  const whole = 'body' in body && body.body instanceof Json ? (body as Result) : resultOf(body as ResultBody)
  const call = callOf({ resultShare: 1, ...changes.call })
  const result = await limitResults(optionsOf(changes, kept))(call, async () => whole)
  return { result, body: result.body.value, whole, kept, told: result.body.value._meta?.['dev.toolway/result'] }
}

const text = (value: string) => ({ type: 'text', text: value })
const lines = Array.from({ length: 1000 }, (_, id) => `line ${id}`).join('\n')
const rows = Array.from({ length: 100 }, (_, id) => ({ id, name: `The row number ${id}`, note: 'as all others' }))
const schema = { type: 'object', properties: { rows: { type: 'array' } }, required: ['rows'] }
const typed = entryOf({ definition: { outputSchema: schema } })

test('W7: a result within the limit is passed on as it is', async () => {
  const { result, whole, kept } = await limit({ content: [text('x'.repeat(2000))] })
  expect(result).toBe(whole)
  expect(kept.size).toBe(0)
})

test.each([
  ['of a program', { resultShare: undefined }],
  ['of a meta-tool', { entry: entryOf({ server: 'toolway' }) }],
  ['of a resource', { entry: entryOf({ kind: 'resource' }) }],
  ['with a page', { entry: entryOf({ definition: { _meta: { ui: { resourceUri: 'ui://page' } } } }) }],
])('W7: the result of a call %s is never cut', async (_, call) => {
  const { result, whole } = await limit({ content: [text(lines)] }, { call })
  expect(result).toBe(whole)
})

test.each([{ maxTokens: 0 }, { call: { resultShare: Number.POSITIVE_INFINITY } }])(
  'W7: %j is no limit',
  async (changes) => {
    const { result, whole } = await limit({ content: [text(lines)] }, changes)
    expect(result).toBe(whole)
  },
)

test('W7: a cut result says what is missing, keeps the bytes, other blocks and members, and whether it is an error', async () => {
  const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
  const json = `{"content":[{"type":"text","text":${JSON.stringify(lines)}},${JSON.stringify(image)}],"isError":true,"_meta":{"a":12345678901234567890}}`
  const whole: Result = { body: Json.raw(Buffer.from(json)), isError: true, plain: true }
  const { result, body, kept, told } = await limit(whole)
  expect([result.isError, body.isError, result.plain]).toEqual([true, true, undefined])
  expect(result.body.bytes.toString()).toContain('"a":12345678901234567890')
  expect(body.content?.map(({ type }) => type)).toEqual(['text', 'image', 'text', 'resource_link'])
  expect(body.content?.[2]?.text).toMatch(
    /^This result was cut: \d+ of 8889 characters, \d+ of 1000 lines are missing. To read them within 600 s/,
  )
  expect(told).toMatchObject({ handle: 'c1', tokens: 2223, maxTokens: 500, missing: { ofCharacters: 8889 } })
  expect(kept.get('c1')).toEqual({ server: 'files', tool: 'read', bytes: whole.body.bytes })
})

test('W7: clients of older revisions get no link', async () => {
  const peer = { ...callOf().peer, request: { id: 1, revision: '2025-03-26' } }
  const { body } = await limit({ content: [text(lines)] }, { call: { peer } })
  expect(body.content?.map(({ type }) => type)).toEqual(['text', 'text'])
})

test('W7: structured content is left out where text has the same', async () => {
  const content = [text(JSON.stringify({ rows }, undefined, 1))]
  const { body, kept, told } = await limit({ content, structuredContent: { rows } }, { maxTokens: 2800 })
  expect(body).toEqual({ content, _meta: { 'dev.toolway/result': told } })
  expect(kept.size).toBe(0)
})

test('W7: structured content is cut too if clients know its schema and the schema allows it', async () => {
  const whole = { content: [text(JSON.stringify({ rows }))], structuredContent: { rows } }
  const cut = await limit(whole, { call: { entry: typed } })
  const kept = (cut.body.structuredContent as typeof whole.structuredContent).rows
  expect(kept.length).toBeGreaterThan(2)
  expect(rows).toEqual(expect.arrayContaining(kept))
  expect(cut.told).toMatchObject({ missing: { ofItems: 100 } })
  const strict = await limit(whole, { call: { entry: typed }, accepts: false })
  expect(strict.result).toBe(strict.whole)
  const nested = await limit(whole, { call: { entry: typed, parent: 'p' } })
  expect(nested.body.structuredContent).toBeUndefined()
})

test('W7: of many text blocks, the first and the last ones stay', async () => {
  const content = Array.from({ length: 100 }, (_, id) => text(`block ${id} ${'x'.repeat(100)}`))
  const { body, told } = await limit({ content })
  const texts = body.content?.map((block) => String(block.text)) ?? []
  expect([texts[0], texts.at(-3)]).toEqual([content[0]?.text, content[99]?.text])
  expect(texts).toContainEqual(expect.stringMatching(/^… \d+ of 100 text blocks left out here …$/))
  expect(told).toMatchObject({ missing: { ofItems: 100 } })
})

test('W7: a question to the client is not cut', async () => {
  const { result, whole } = await limit({ resultType: 'input_required', content: [text(lines)] })
  expect(result).toBe(whole)
})

test('W7: tables are compact if configured, and cut between their rows', async () => {
  const body = { content: [text(JSON.stringify(rows))] }
  const compact = await limit(body, { compact: true, maxTokens: 0 })
  expect(compact.told).toEqual({ compact: true })
  expect(String(compact.body.content?.[0]?.text).split('\n')[1]).toBe('0,The row number 0,as all others')
  const cut = await limit(body, { compact: true })
  expect(cut.told).toMatchObject({ compact: true, handle: 'c1', missing: { ofLines: 101 } })
  expect(cut.kept.get('c1')?.bytes).toEqual(cut.whole.body.bytes)
})

test('W7: the pipeline takes only calls with a limit to this step', async () => {
  const long = entryOf({ run: async () => resultOf({ content: [text(lines)] }) })
  const options = optionsOf({}, new Map())
  const limits = {
    ...options.limits,
    agents: new Map([['default', 0]]),
    clients: new Map([['capped', 100]]),
    maxTokens: undefined,
  }
  const { handle } = openPipeline({ results: { ...options, limits } })
  const isCut = async (agent: string, client: string, resultShare?: number) => {
    const caller = { ...callOf().caller, agent, client }
    const { body } = await handle(callOf({ caller, entry: long, resultShare }))
    return body.value._meta !== undefined
  }
  expect(await isCut('default', 'capped', 1)).toBe(false)
  expect(await isCut('other', 'unknown', 1)).toBe(false)
  expect(await isCut('other', 'capped')).toBe(false)
  expect(await isCut('other', 'capped', 1)).toBe(true)
})
