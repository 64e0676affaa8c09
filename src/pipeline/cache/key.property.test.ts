import assert from 'node:assert/strict'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import type { Entry } from '../../core/entry.ts'
import { Json } from '../../json/json.ts'
import { type Asked, asking, openCache, readTool, settled, textOf } from './cache.fixture.ts'

// Few values of each, some that are easily taken for one another.
const servers = {
  files: { session: 'shared' },
  private: { command: 'x', session: 'caller' },
  fresh: { command: 'x', session: 'call' },
} as const
const entries: Entry[] = Object.keys(servers).flatMap((server) => [
  readTool({ server, name: 'read' }),
  readTool({ server, name: 'public', definition: { description: 'one' } }),
  readTool({ server, name: 'public', definition: { description: 'two' } }),
])
/** Each group means the same. */
const spellings = [
  ['{"a":1,"b":"x"}', '{"b":"x","a":1.0}', '{ "a" : 1e0, "\\u0062" : "x" }'],
  ['{"a":"1","b":"x"}'],
  ['{"a":9007199254740993}', '{ "a":9007199254740993 }'],
  ['{"a":9007199254740992}'],
]
const capabilities = [{}, { roots: {}, sampling: {} }, { sampling: {}, roots: {} }, { experimental: { x: 1 } }]
const metas = [{}, { progressToken: 1 }, { traceparent: '00-a' }, { 'dev.toolway/agent': 'x' }, { tenant: 'x' }]

const asked = fc.record({
  entry: fc.nat({ max: entries.length - 1 }),
  spelling: fc.tuple(fc.nat({ max: spellings.length - 1 }), fc.nat({ max: 2 })),
  agent: fc.constantFrom('ann', 'bob'),
  principal: fc.constantFrom('key:1', 'key:2'),
  session: fc.constantFrom('s1', 's2'),
  capabilities: fc.nat({ max: capabilities.length - 1 }),
  meta: fc.nat({ max: metas.length - 1 }),
  uri: fc.constantFrom(undefined, 'a:b', 'a:c'),
})

type Question = typeof asked extends fc.Arbitrary<infer T> ? T : never

function callOf({ entry, spelling, capabilities: which, meta, uri, ...caller }: Question): ReturnType<typeof asking> {
  const group = spellings[spelling[0]] as string[]
  const changes: Asked = {
    entry: entries[entry] as Entry,
    caller: { ...caller, capabilities: capabilities[which] as Record<string, unknown> },
    meta: metas[meta] as Record<string, unknown>,
    ...(uri !== undefined && { uri }),
  }
  const call = asking(changes)
  const args = Json.raw<Record<string, unknown>>(Buffer.from(group[spelling[1] % group.length] as string))
  return { ...call, input: { ...call.input, arguments: args } }
}

/** What the answer may depend on, in the plainest words. */
function model(question: Question, scope: Scope): string {
  const { server, name, definition } = entries[question.entry] as Entry
  const { session } = servers[server as keyof typeof servers]
  const capable = question.capabilities === 1 || question.capabilities === 2
  const shared = name === 'public'
  const ofSession = session === 'caller' || (capable && !shared)
  const ofPrincipal = ofSession || session === 'call' || !(shared || scope === 'agent')
  return JSON.stringify({
    server,
    name,
    definition,
    args: question.spelling[0],
    uri: question.uri ?? null,
    tenant: question.meta === 4,
    profile: capable ? 'capable' : question.capabilities,
    agent: shared && !ofPrincipal ? null : question.agent,
    principal: ofPrincipal ? question.principal : null,
    session: ofSession ? question.session : null,
  })
}

const scopes = ['principal', 'agent'] as const
type Scope = (typeof scopes)[number]

const open = (scope?: Scope) => openCache({ cache: { shared: ['*.public'], scope }, servers })

test.each(scopes)(
  'F13: two calls get one answer if and only if they are equal in all that can change it (scope: %s)',
  async (scope) => {
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 2, maxLength: 40, size: 'max' }), async (questions) => {
        const { handle } = open(scope)
        const answers = new Map<string, unknown>()
        for (const question of questions) {
          const text = textOf(await handle(callOf(question)))
          const known = answers.get(model(question, scope))
          if (known !== undefined) assert.equal(text, known)
          else assert.ok(![...answers.values()].includes(text))
          answers.set(model(question, scope), text)
        }
      }),
      runs(20, 3_000),
    )
  },
)

test.each(scopes)('F13: the same holds for calls that are all under way at once (scope: %s)', async (scope) => {
  await fc.assert(
    fc.asyncProperty(fc.array(asked, { minLength: 2, maxLength: 40, size: 'max' }), async (questions) => {
      const { handle, runs } = open(scope)
      const results = await Promise.all(questions.map((question) => handle(callOf(question))))
      expect(runs).toHaveLength(new Set(questions.map((question) => model(question, scope))).size)
      const texts = results.map(textOf)
      for (const [index, question] of questions.entries()) {
        const same = questions.findIndex((other) => model(other, scope) === model(question, scope))
        assert.equal(texts[index], texts[same])
      }
      await settled()
    }),
    runs(12, 3_000),
  )
})

test('F13: long keys distinguish calls as short ones do', async () => {
  const { handle, runs } = open()
  const long = 'x'.repeat(5_000)
  for (const args of [{ a: long }, { a: `${long}y` }, { a: long, b: 1 }, { a: long }]) await handle(asking({ args }))
  expect(runs).toHaveLength(3)
})

test('F13: halves of characters are not taken for one another, in keys of any length', async () => {
  for (const rest of ['', 'x'.repeat(5_000)]) {
    const { handle, runs } = open()
    for (const half of ['\ud800', '\ud801', '\ufffd', '\ud800']) await handle(asking({ args: { a: half + rest } }))
    expect(runs).toHaveLength(3)
  }
})
