import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import type { AuditFilter } from '../../core/audit-archive.ts'
import { createRecordPairing, matchesFilter } from './index-file.ts'
import { logFolder, start } from './log.fixture.ts'
import { type AuditQuery, cursorOf, openSearch } from './search.ts'
import { readRecent } from './tail.ts'

const minute = 60_000

async function searched(folder: string, query: AuditQuery = {}) {
  using search = openSearch({ folder })
  await search.catchUp()
  return [...search.query(query)]
}
const calls = async (folder: string, query: AuditQuery = {}) => (await searched(folder, query)).map(({ call }) => call)

describe('F11: searching the log', () => {
  test('one row for each operation: how it ended, with the arguments it began with; newest first', async () => {
    await using log = await logFolder()
    log.write({ call: 'a', server: 'fs', tool: 'read', arguments: { path: '/x' }, rule: 'agents.dev.allow.servers[0]' })
    log.write({ call: 'b', at: start + minute, decision: 'DENY', reason: 'tool_not_allowed', code: 'DENIED_BY_POLICY' })
    log.write({ call: 'c', at: start + 2 * minute, arguments: { q: 1 }, open: true })
    expect(await searched(log.folder)).toMatchObject([
      { call: 'c', ended: false, arguments: { q: 1 }, lane: '1', seq: 5 },
      { call: 'b', ended: true, decision: 'DENY', reason: 'tool_not_allowed', code: 'DENIED_BY_POLICY' },
      {
        call: 'a',
        ended: true,
        decision: 'ALLOW',
        server: 'fs',
        arguments: { path: '/x' },
        latency_ms: 5,
        rule: 'agents.dev.allow.servers[0]',
        time: '2026-03-01T12:00:00.005Z',
      },
    ])
  })

  test('records written since are found by the next search, and an operation that ends is still one row', async () => {
    await using log = await logFolder()
    log.write({ call: 'a', open: true, arguments: { x: 'begun' } })
    using search = openSearch({ folder: log.folder })
    expect(await search.catchUp()).toBe(1)
    expect([...search.query({})]).toMatchObject([{ call: 'a', ended: false }])
    const end = {
      call: 'a',
      agent: 'dev',
      operation: 'call_tool',
      phase: 'after',
      decision: 'TIMEOUT',
      is_error: false,
    }
    log.put(end, start + 500)
    log.write({ call: 'b', lane: '2', at: start + 100 })
    expect(await search.catchUp()).toBe(3)
    expect([...search.query({})]).toMatchObject([
      { call: 'a', ended: true, decision: 'TIMEOUT', arguments: { x: 'begun' } },
      { call: 'b', lane: '2' },
    ])
    expect(await search.catchUp()).toBe(0)
  })

  test('filters, wildcards, both spellings of a tool, text of arguments', async () => {
    await using log = await logFolder()
    log.write({
      call: 'a',
      agent: 'team.role',
      server: 'fs',
      tool: 'read_file',
      arguments: { path: '/srv/Ärger "x".md' },
    })
    log.write({ call: 'b', server: 'fs', tool: 'write_file', is_error: true, at: start + minute, parent: 'a' })
    log.write({
      call: 'c',
      server: 'db',
      tool: 'read_file',
      decision: 'DENY',
      reason: 'rate_limited',
      code: 'RATE_LIMITED',
    })
    log.write({ call: 'd', agent: 'odd', arguments: { x: 'before\0after' }, open: true, at: start + 2 * minute })
    const found = async (query: AuditQuery) => (await calls(log.folder, query)).sort()
    expect(await found({ tool: 'read_file' })).toEqual(['a', 'c'])
    expect(await found({ tool: 'fs.*' })).toEqual(['a', 'b'])
    expect(await found({ tool: 'fs.read_file' })).toEqual(['a'])
    expect(await found({ server: '*', agent: 'team.*' })).toEqual(['a'])
    expect(await found({ decision: 'DENY' })).toEqual(['c'])
    expect(await found({ reason: 'rate_*', code: 'RATE_LIMITED' })).toEqual(['c'])
    expect(await found({ is_error: true })).toEqual(['b'])
    expect(await found({ parent: 'a' })).toEqual(['b'])
    expect(await found({ call: 'b' })).toEqual(['b'])
    expect(await found({ since: start + minute })).toEqual(['b', 'd'])
    expect(await found({ until: start + minute })).toEqual(['a', 'c'])
    expect(await found({ text: 'ÄRGER "x"' })).toEqual(['a'])
    expect(await found({ text: 'path=/srv' })).toEqual(['a'])
    expect(await found({ text: 'är' })).toEqual(['a'])
    expect(await found({ text: 'r%e_r' })).toEqual([])
    expect(await found({ text: 'e\0after' })).toEqual(['d'])
    expect(await found({ text: 'e\0a' })).toEqual(['d'])
    expect(await found({ agent: "x' OR 1=1 --" })).toEqual([])
  })

  test('pages by cursor, in both directions, even where times are equal', async () => {
    await using log = await logFolder()
    for (let number = 0; number < 25; number++)
      log.write({ call: `c${number}`, lane: String(1 + (number % 3)), at: start })
    using search = openSearch({ folder: log.folder })
    await search.catchUp()
    for (const order of ['newest', 'oldest'] as const) {
      const all = [...search.query({ order })]
      const paged: typeof all = []
      for (let page = [...search.query({ order, limit: 4 })]; page.length > 0; ) {
        paged.push(...page)
        page = [...search.query({ order, limit: 4, before: cursorOf(page.at(-1)!) })]
      }
      expect(all).toHaveLength(25)
      expect(paged).toEqual(all)
    }
    expect(() => [...search.query({ before: 'nonsense' })]).toThrow('Invalid cursor')
  })

  test('raw: the records themselves, with those of the log about itself', async () => {
    await using log = await logFolder()
    log.put({ operation: 'start', pid: 1 }, start)
    log.write({ call: 'a', arguments: { x: 'needle' } })
    log.put({ operation: 'gap', reason: 'unrecorded' }, start + minute)
    using search = openSearch({ folder: log.folder })
    await search.catchUp()
    const records = [...search.records({ order: 'oldest' })]
    expect(records.map(({ record }) => record.phase ?? record.operation)).toEqual(['start', 'before', 'after', 'gap'])
    expect(records.map(({ text }) => `${text}\n`).join('')).toBe(readFileSync(log.path(), 'utf8'))
    expect([...search.records({ text: 'needle' })]).toHaveLength(2)
    expect([...search.query({})].map(({ operation }) => operation)).toEqual(['gap', 'call_tool'])
  })

  test('the index and the plain meaning of a filter never disagree', async () => {
    await using log = await logFolder()
    const some = ['', 'a', 'b', 'ab', 'a.b', 'ba', 'abc']
    const word = fc.constantFrom(...some)
    const optional = fc.option(word, { nil: undefined })
    const given = fc.record({
      agent: word,
      server: optional,
      tool: optional,
      reason: optional,
      is_error: fc.boolean(),
      open: fc.boolean(),
      arguments: fc.option(fc.dictionary(word, fc.oneof(word, fc.integer(), fc.array(word))), { nil: undefined }),
      minutes: fc.nat(5),
      lane: fc.constantFrom('1', '2'),
    })
    for (const [index, { minutes, ...rest }] of fc.sample(given, { numRuns: 200, seed: 7 }).entries()) {
      const defined = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
      log.write({ call: `${index}`, at: start + minutes * minute, ...defined })
    }
    using search = openSearch({ folder: log.folder })
    await search.catchUp()
    const pairs = createRecordPairing()
    const rows = (await readRecent(log.folder, 1000)).records.flatMap((stored) => pairs.add(stored) ?? [])
    const all = [...rows, ...pairs.open()]
    const pattern = fc.oneof(
      word,
      word.map((text) => `${text}*`),
      word.map((text) => `*${text}`),
      fc.constant('*'),
    )
    const wanted = fc.record(
      {
        agent: pattern,
        server: pattern,
        tool: pattern,
        reason: pattern,
        text: fc.constantFrom('a', 'ab', 'abc', 'a.b', 'b=', 'ab=ba', '1', 'zzz', '"'),
        is_error: fc.boolean(),
        since: fc.nat(5).map((minutes) => start + minutes * minute),
        until: fc.nat(5).map((minutes) => start + minutes * minute),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(wanted, (filter: AuditFilter) => {
        const expected = all.filter((row) => matchesFilter(row, filter)).map(({ call }) => call)
        expect([...search.query(filter)].map(({ call }) => call).sort()).toEqual(expected.sort())
      }),
      runs(150, 20_000),
    )
  })
})
