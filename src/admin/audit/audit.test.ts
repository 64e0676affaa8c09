import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { listLanes, listSegments } from '../../audit/log-files.ts'
import { openAuditLog } from '../../audit/write/audit-log.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { AuditQueries, ChainVerification } from './audit.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

const who = { agent: 'dev', principal: 'key:dev', operation: 'call_tool', server: 'files', tool: 'read', write: false }
const ended = { decision: 'ALLOW', is_error: false, latency_ms: 1 } as const

/** A log with some operations, and the queries on it. */
async function open() {
  const { path: folder } = stack.use(await temporaryFolder())
  const audit = stack.use(
    await openAuditLog({
      ...{ folder, sync: 'none', unrecordedReads: 'allow', retainMs: 1e9, key: 'a key', describe: (given) => given },
      clock: systemClock,
      log: silentLog,
    }),
  )
  const record = (call: string) => {
    audit.begin({ ...who, call, arguments: { path: `/${call}` } })
    audit.end({ ...who, call, ...ended })
  }
  const clock = createManualClock()
  const queries = stack.use(new AuditQueries({ folder, flushed: () => audit.flushed(), clock }))
  return { folder, audit, record, queries, clock }
}

test('F11: finds records written just before, and continues after a page', async () => {
  const { record, queries } = await open()
  for (const call of ['a', 'b', 'c']) record(call)
  const first = await queries.search({ limit: 2 })
  expect(first.rows.map(({ call }) => call)).toEqual(['c', 'b'])
  const second = await queries.search({ limit: 2, before: first.nextCursor as string })
  expect([second.rows.map(({ call }) => call), second.nextCursor]).toEqual([['a'], null])
  expect(await queries.recordsOf('b')).toMatchObject({
    begin: { phase: 'before', arguments: { path: '/b' } },
    end: { phase: 'after', decision: 'ALLOW' },
  })
  expect(await queries.recordsOf('nobody')).toEqual({ begin: null, end: null })
})

test('invalid queries are explained, failures are not, and the worker survives both', async () => {
  const { record, queries } = await open()
  record('a')
  await expect(queries.search({ limit: 1, before: 'x' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  const { path } = stack.use(await temporaryFolder())
  await mkdir(join(path, '1'))
  await mkdir(join(path, 'index.sqlite'))
  const broken = stack.use(new AuditQueries({ folder: path, flushed: async () => {}, clock: systemClock }))
  await expect(broken.search({ limit: 1 })).rejects.toMatchObject({ code: 'INTERNAL' })
  expect((await queries.search({ limit: 1 })).rows).toHaveLength(1)
})

test('its thread ends when idle, is restarted, and ends with it', async () => {
  const { record, queries, clock } = await open()
  record('a')
  await queries.search({ limit: 1 })
  expect(clock.pending).toBe(1)
  await clock.pass(60_000)
  expect(clock.pending).toBe(0)
  expect((await queries.search({ limit: 1 })).rows).toHaveLength(1)
  const waiting = queries.search({ limit: 1 })
  const refused = expect(waiting).rejects.toMatchObject({ code: 'OVERLOADED' })
  await queries[Symbol.asyncDispose]()
  await refused
  await expect(queries.search({ limit: 1 })).rejects.toMatchObject({ code: 'OVERLOADED' })
})

test('F11: a modified log is detected, once for all callers', async () => {
  const { folder, record, audit, queries, clock } = await open()
  record('a')
  await audit.flushed()
  const chain = new ChainVerification(queries, { auditKey: async () => 'a key', clock, log: createKeptLog() })
  expect(chain.chain().state).toBe('unknown')
  const checked = () => until(() => chain.chain().state !== 'checking', { what: 'the check' })
  expect([chain.verifyChain().state, chain.verifyChain().state]).toEqual(['checking', 'checking'])
  await checked()
  expect(chain.chain()).toMatchObject({ state: 'intact', problems: [] })
  await audit[Symbol.asyncDispose]()
  const [lane = ''] = listLanes(folder)
  await writeFile(join(folder, lane, listSegments(folder, lane)[0] as string), 'put in\n', { flag: 'a' })
  chain.verifyChain()
  await checked()
  expect(chain.chain().state).toBe('broken')
  expect(chain.chain().problems[0]).toContain(lane)
  // The result remains until the next check ends.
  expect([chain.verifyChain().state, chain.verified().state]).toEqual(['checking', 'broken'])
  await checked()
  await queries[Symbol.asyncDispose]()
  chain.verifyChain()
  await checked()
  expect(chain.verified()).toMatchObject({ state: 'broken', problems: [expect.stringContaining('not be verified')] })
})

test('F11, V7: while its result is read, the log is verified a minute after the start and then every ten minutes', async () => {
  const { folder, record, audit, queries, clock } = await open()
  record('a')
  await audit.flushed()
  const chain = new ChainVerification(queries, { auditKey: async () => 'a key', clock, log: createKeptLog() })
  const checked = () => until(() => chain.chain().state !== 'checking', { what: 'the check' })
  clock.advance(59_999)
  expect([chain.verified().state, chain.chain().state]).toEqual(['unknown', 'unknown'])
  clock.advance(1)
  expect([chain.verified().state, chain.chain().state]).toEqual(['unknown', 'checking'])
  await checked()
  expect(chain.verified().state).toBe('intact')
  const [lane = ''] = listLanes(folder)
  await writeFile(join(folder, lane, listSegments(folder, lane)[0] as string), 'put in\n', { flag: 'a' })
  clock.advance(599_999)
  expect([chain.verified().state, chain.chain().state]).toEqual(['intact', 'intact'])
  clock.advance(1)
  expect([chain.verified().state, chain.chain().state]).toEqual(['intact', 'checking'])
  // One that took a minute is repeated after fifty.
  clock.advance(60_000)
  await checked()
  expect(chain.verified().state).toBe('broken')
  clock.advance(50 * 60_000 - 1)
  chain.verified()
  expect(chain.chain().state).toBe('broken')
  clock.advance(1)
  chain.verified()
  expect(chain.chain().state).toBe('checking')
  await checked()
})

test('B10: the archive is searched first, and the page names its source', async () => {
  const { folder, record, audit, clock } = await open()
  record('a')
  await audit.flushed()
  let up = true
  const found = {
    replica: 'r',
    host: 'h',
    lane: '1',
    line: '{"phase":"before","operation":"list","seq":1,"time":"x","call":"b","prev":"","hash":""}',
    begin: null,
  }
  const archive = {
    ask: async () => (up ? { hits: [found], next: 'pg.1.1.1' } : undefined) as never,
    status: () => ({ up, behindRecords: 3, behindSeconds: 1 }),
  }
  const queries = stack.use(new AuditQueries({ folder, flushed: () => audit.flushed(), archive, clock }))
  const first = await queries.search({ limit: 1 })
  expect(first).toMatchObject({
    source: 'postgres',
    rows: [{ call: 'b', host: 'h' }],
    behind: { records: 3, seconds: 1 },
  })
  up = false
  expect(await queries.search({ limit: 1 })).toMatchObject({ source: 'local', rows: [{ call: 'a' }] })
  const next = queries.search({ limit: 1, before: first.nextCursor as string })
  await expect(next).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
})
