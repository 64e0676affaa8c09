import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSpool } from '../../src/audit/archive/spool.ts'
import { listLanes, listSegments } from '../../src/audit/log-files.ts'
import { archiveRows } from '../../src/audit/reader.ts'
import { signerOf } from '../../src/audit/record.ts'
import { logFolder, start } from '../../src/audit/search/log.fixture.ts'
import { type AuditQuery, type AuditSearch, cursorOf, openSearch } from '../../src/audit/search/search.ts'
import { headFile, openHead } from '../../src/audit/write/head.ts'
import { nodeFileSystem } from '../../src/audit/write/segment-file.ts'
import { systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { openPostgresAudit, type PostgresAudit } from '../../src/stores/postgres/audit.ts'
import { type PostgresServer, postgresProgram, startPostgres } from '../fixtures/postgres.ts'
import { until } from '../fixtures/until.ts'
import { withPart } from '../fixtures/with-part.ts'

const minute = 60_000
const some = ['', 'a', 'b', 'ab', 'a.b', 'ba', 'a%b', 'a_b', 'a\\b', 'Ärger', 'x\0y', 'Ω\ud800']
const word = fc.constantFrom(...some)
const optional = fc.option(word, { nil: undefined })
const operation = fc.record({
  agent: word,
  server: optional,
  tool: optional,
  reason: optional,
  parent: optional,
  is_error: fc.boolean(),
  open: fc.boolean(),
  arguments: fc.option(fc.dictionary(word, fc.oneof(word, fc.integer(), fc.array(word))), { nil: undefined }),
  minutes: fc.nat(5),
  lane: fc.constantFrom('1', '2'),
})
const pattern = fc.oneof(
  word,
  word.map((text) => `${text}*`),
  word.map((text) => `*${text}`),
  fc.constantFrom('*', 'a*b', '*.*'),
)
const query = fc.record(
  {
    agent: pattern,
    server: pattern,
    tool: pattern,
    reason: pattern,
    parent: pattern,
    decision: fc.constantFrom('ALLOW', 'DENY', '*'),
    text: fc.constantFrom('a', 'ab', 'a.b', 'b=', 'AB=ba', '1', 'ärger', '%', '\\', 'zzz', '"', ''),
    is_error: fc.boolean(),
    since: fc.nat(5).map((minutes) => start + minutes * minute),
    until: fc.nat(5).map((minutes) => start + minutes * minute),
    order: fc.constantFrom('newest' as const, 'oldest' as const),
  },
  { requiredKeys: [] },
)

withPart(postgresProgram(), 'F11, B10: a search in PostgreSQL finds what one in the local index finds', () => {
  let server: PostgresServer
  let log: Awaited<ReturnType<typeof logFolder>>
  let local: AuditSearch
  let postgres: PostgresAudit

  beforeAll(async () => {
    server = await startPostgres()
    log = await logFolder()
    for (const [index, { minutes, ...rest }] of fc.sample(operation, { numRuns: 300, seed: 11 }).entries()) {
      const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
      log.write({ call: `${index}`, at: start + minutes * minute, ...given })
    }
    log.put({ operation: 'gap', reason: 'unrecorded' }, start + minute)
    log.put({ operation: 'start', pid: 1 }, start + minute)
    for (const lane of listLanes(log.folder)) settle(lane)
    local = openSearch({ folder: log.folder })
    await local.catchUp()
    postgres = await openPostgresAudit({
      ...{ url: await server.database(), migrate: 'auto', spool: openSpool(log.folder), retainMs: 1e12 },
      clock: systemClock,
      log: silentLog,
    })
    // On a busy machine, this may take longer than it waits for PostgreSQL.
    await until(() => postgres.status().up && postgres.status().behindRecords === 0, { what: 'the copy' })
  }, 60_000)
  afterAll(async () => {
    local[Symbol.dispose]()
    await postgres[Symbol.asyncDispose]()
    await log[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  /** Says that all of a lane is on disk, as the log itself does it after each commit. */
  function settle(lane: string): void {
    const text = readFileSync(`${log.folder}/${lane}/${listSegments(log.folder, lane).at(-1)}`, 'utf8')
    const { seq, hash } = JSON.parse(text.trim().split('\n').at(-1) as string) as { seq: number; hash: string }
    const path = headFile(log.folder, lane)
    openHead(path, { lane, seq, hash }, nodeFileSystem, signerOf('any')).close()
  }

  const asked = async (wanted: AuditQuery & { readonly limit: number; readonly raw?: boolean }) => {
    const page = await postgres.ask(({ search }) => search(wanted))
    if (!page) throw new Error('PostgreSQL could not be asked')
    return page
  }
  const plain = (rows: ReturnType<typeof archiveRows>) => rows.map(({ replica: _, host: __, ...row }) => row)

  test('gives the same rows for any query, in both orders', async () => {
    await fc.assert(
      fc.asyncProperty(query, async (wanted) => {
        const { hits: found, next } = await asked({ ...wanted, limit: 1000 })
        expect(plain(archiveRows(found))).toEqual([...local.query(wanted)])
        expect(next).toBeNull()
      }),
      { numRuns: 150 },
    )
  }, 30_000)

  test('gives the same raw records', async () => {
    for (const wanted of [{}, { text: 'ab' }, { agent: 'a*' }, { operation: 'start' }] as AuditQuery[]) {
      const { hits: found } = await asked({ ...wanted, limit: 1000, raw: true })
      expect(found.map(({ line }) => line)).toEqual([...local.records(wanted)].map(({ text }) => text))
    }
  })

  test('gives the same pages, and refuses a cursor of the other', async () => {
    const all = [...local.query({ agent: '*' })]
    const paged: unknown[] = []
    for (let before: string | undefined; ; ) {
      const { hits: found, next } = await asked({ agent: '*', limit: 37, ...(before !== undefined && { before }) })
      paged.push(...plain(archiveRows(found)))
      if (next === null) break
      before = next
    }
    expect(paged).toEqual(all)
    const foreign = cursorOf(all[3] as (typeof all)[number])
    await expect(asked({ limit: 1, before: foreign })).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    const { next } = await asked({ limit: 1 })
    expect(() => [...local.query({ before: String(next) })]).toThrow('Invalid cursor')
  })
})
