import { expect, test } from 'vitest'
import { toolway as command } from '../../../src/cli/kit.fixture.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import {
  frozenConfig,
  frozenFacts,
  frozenGrants,
  frozenSql,
  replicaStores,
  thaw,
  thawRedis,
} from '../../fixtures/frozen-state.ts'
import { ask, startPostgres } from '../../fixtures/postgres.ts'
import { goodHeaders, messageOf, rawRequest, rpc } from '../../fixtures/raw-http.ts'
import { askRedis, startRedis } from '../../fixtures/redis.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'

interface Chain {
  readonly replica: string
  readonly lane: string
  readonly epoch: number
  readonly seq: string
}

withPart('redis-server', 'V25: what replicas of 0.1.0 shared', () => {
  test('B10, F11, F13: a session and the records in PostgreSQL continue; cached results do no harm; grants are found', async () => {
    await using open = new AsyncDisposableStack()
    const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
    open.use(redis)
    open.use(postgres)
    const database = await postgres.database()
    await ask(database, frozenSql())
    await askRedis(redis, thawRedis)
    const folder = open.use(await temporaryFolder())
    await thaw('replica', folder)
    const chains = () =>
      ask<Chain>(database, 'SELECT replica, lane, epoch, seq FROM toolway.chains ORDER BY replica, lane, epoch')
    const before = await chains()
    const { session, cached } = frozenFacts()

    const cache = { cache: { enabled: true, ttl: '1h' } }
    const gateway = open.use(await startToolway(frozenConfig(1, replicaStores(redis.url, database), cache), { folder }))
    const headers = { ...goodHeaders(gateway), 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
    const call = async (tool: string, args: object) => {
      const body = rpc(7, 'tools/call', { name: `notes__${tool}`, arguments: args })
      const { status, text } = await rawRequest(gateway.url, { headers, body })
      return { status, ...JSON.parse(messageOf(text)) }
    }
    // Results are kept for each principal since: what was kept for an agent is not found.
    const listed = await call('list_notes', {})
    expect(listed).toMatchObject({ status: 200, result: { structuredContent: { id: expect.any(String) } } })
    expect(listed.result.structuredContent.id).not.toBe(cached)
    // The list that was fetched meanwhile drops what was kept before.
    const ids = new Set([listed.result.structuredContent.id])
    const isCached = async () => {
      const { id } = (await call('list_notes', {})).result.structuredContent
      return ids.has(id) || !ids.add(id)
    }
    await until(isCached, { what: 'a result from the cache' })
    expect(await call('add_note', { text: 'note of this version' })).toMatchObject({ status: 200, result: {} })

    // No new chain: what is added follows the last record that 0.1.0 copied, and what it had left is made up for.
    const grown = async () => {
      const now = await chains()
      return now.some(({ seq }, index) => Number(seq) > Number(before[index]?.seq) + 4) ? now : undefined
    }
    const after = await until(grown, { what: 'the new records in PostgreSQL' })
    const named = ({ replica, lane, epoch }: Chain) => ({ replica, lane, epoch })
    expect(after.map(named)).toEqual(before.map(named))
    const run = async (...words: string[]) => {
      const surroundings = { cwd: folder.path, env: process.env }
      const { code, stdout } = await command([...words, '--json', '--config', 'toolway.json'], surroundings)
      return { code, ...JSON.parse(stdout) }
    }
    for (const words of [
      ['audit', 'verify', '--postgres'],
      ['audit', 'verify'],
    ])
      expect(await run(...words)).toMatchObject({ code: 0, ok: true, problems: [] })
    for (const text of ['killed note', 'stopped note', 'note of this version'])
      expect(await run('audit', 'query', '--text', text)).toMatchObject({ rows: [{ tool: 'add_note' }] })
    expect(await run('migrate')).toMatchObject({ code: 0, applied: [] })
    expect(await run('auth', '--list')).toMatchObject(frozenGrants)
    const alarms = gateway.log.lines.filter(({ level }) => level === 'warn' || level === 'error')
    expect(alarms.map(({ facts }) => facts.kind).sort()).toEqual(['malformed-definition', 'malformed-member'])
  })
})
