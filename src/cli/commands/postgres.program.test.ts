import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, type PostgresServer, postgresProgram, startPostgres } from '../../../tests/fixtures/postgres.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { openReplica } from '../../stores/postgres/replica.fixture.ts'
import { postgresFindings } from '../doctor/stores.ts'
import { folder } from '../folder.fixture.ts'
import { recordedShell, toolway } from '../kit.fixture.ts'
import { run } from '../run.ts'

withPart(postgresProgram(), 'B10: the command line with PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server[Symbol.asyncDispose]())

  const configured = (url: string) =>
    folder({ 'toolway.json': { audit: { path: './audit' }, stores: { path: './state', postgres: { url } } } })

  test('migrate: shows what there is to do, does it, and has nothing left to do', async () => {
    const url = await server.database()
    await using place = await configured(url)
    const dry = await toolway(['migrate', '--dry-run'], place)
    expect(dry).toMatchObject({ code: 0, stderr: '' })
    expect(dry.stdout).toContain('would apply 1 audit')
    expect((await toolway(['migrate'], place)).stdout).toContain('applied 1 audit')
    const again = await toolway(['migrate', '--json'], place)
    expect(JSON.parse(again.stdout)).toMatchObject({ dryRun: false, from: 1, to: 1, applied: [] })
  })

  test('migrate: without PostgreSQL in the configuration, and where it does not answer', async () => {
    await using none = await folder({ 'toolway.json': {} })
    expect(await toolway(['migrate'], none)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('stores.postgres'),
    })
    await using away = await configured('postgres://nobody:hunter2@127.0.0.1:1/none')
    const answer = await toolway(['migrate'], away)
    expect(answer).toMatchObject({ code: 3, stderr: expect.stringContaining('127.0.0.1:1/none') })
    expect(answer.stderr).not.toContain('hunter2')
  })

  test('doctor says whether it can be used, and what to do', async () => {
    const found = (url: string, migrate: 'auto' | 'manual') =>
      postgresFindings({ stores: { postgres: { url, migrate, disabled: false } } } as never, { command: 'toolway' })
    const url = await server.database()
    expect(await found(url, 'auto')).toMatchObject({ status: 'ok', message: expect.stringContaining('next start') })
    expect(await found(url, 'manual')).toMatchObject({ status: 'problem', remedy: 'toolway migrate' })
    expect(await found('postgres://127.0.0.1:1/none', 'auto')).toMatchObject({ status: 'warning' })
    await using place = await configured(url)
    await toolway(['migrate'], place)
    expect(await found(url, 'manual')).toMatchObject({ status: 'ok', message: expect.stringContaining('up to date') })
  })

  test('B10: a database with an encoding that cannot store every record is refused by migrate and doctor', async () => {
    const url = await server.database(`ENCODING 'LATIN1' TEMPLATE template0`)
    await using place = await configured(url)
    for (const words of [['migrate'], ['migrate', '--dry-run']]) {
      expect(await toolway(words, place)).toMatchObject({ code: 3, stderr: expect.stringContaining('LATIN1') })
    }
    const config = { stores: { postgres: { url, migrate: 'auto' } } } as never
    const found = await postgresFindings(config, { command: 'toolway' })
    expect(found).toMatchObject({ status: 'problem', message: expect.stringContaining('LATIN1') })
  })

  test('audit query asks all replicas, or says that it does not; audit verify --postgres finds what was changed', async () => {
    const url = await server.database()
    await using here = await configured(url)
    await using elsewhere = await folder({})
    for (const [call, at] of [
      ['here', join(here.cwd, 'audit')],
      ['elsewhere', join(elsewhere.cwd, 'audit')],
    ] as const) {
      await using replica = await openReplica({ url, folder: at })
      replica.call(call)
      await replica.shipped()
    }
    const query = async (...words: string[]) =>
      JSON.parse((await toolway(['audit', 'query', '--json', ...words], here)).stdout) as {
        rows: { call: string }[]
        source?: string
        next: string | null
      }
    const all = await query()
    expect([all.source, all.rows.map(({ call }) => call)]).toEqual(['postgres', ['elsewhere', 'here']])
    const local = await query('--local')
    expect([local.source, local.rows.map(({ call }) => call)]).toEqual(['local', ['here']])
    const { next } = await query('--limit', '1')
    expect((await query('--before', String(next))).rows.map(({ call }) => call)).toEqual(['here'])

    const well = await toolway(['audit', 'verify', '--postgres'], here)
    expect(well).toMatchObject({ code: 0, stdout: expect.stringMatching(/^✓ \d+ records in 2 chains of /) })
    await ask(url, `UPDATE toolway.records SET line = replace(line, 'dev', 'eve') WHERE phase = 'after'`)
    const changed = await toolway(['audit', 'verify', '--postgres'], here)
    expect(changed).toMatchObject({ code: 1, stdout: expect.stringMatching(/record \d+ .*hash/) })

    await server.stop()
    try {
      const away = await toolway(['audit', 'query', '--json'], here)
      expect(away.stderr).toContain("this machine's records")
      expect(JSON.parse(away.stdout)).toMatchObject({ source: 'local', rows: [{ call: 'here' }] })
      expect(await toolway(['audit', 'query', '--before', String(next)], here)).toMatchObject({ code: 1 })
    } finally {
      await server.start()
    }
  })

  /** Two replicas that have recorded in turns: `a1`, `b1`, `a2`, `b2` arrived in that order. */
  async function twoReplicas(url: string, cwd: string) {
    const open = new AsyncDisposableStack()
    const a = open.use(await openReplica({ url, folder: join(cwd, 'a') }))
    const b = open.use(await openReplica({ url, folder: join(cwd, 'b') }))
    for (const round of [1, 2]) {
      for (const [name, replica] of Object.entries({ a, b })) {
        replica.call(`${name}${round}`, { server: 'files', tool: `read_${name}`, kind: 'tool' })
        await replica.shipped()
      }
    }
    return { a, b, [Symbol.asyncDispose]: () => open.disposeAsync() }
  }
  const callsIn = (stdout: string) =>
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).call)

  test('audit tail and export --postgres: all replicas, in the order in which their records arrived', async () => {
    const url = await server.database()
    await using place = await configured(url)
    await using _ = await twoReplicas(url, place.cwd)
    const all = ['a1', 'b1', 'a2', 'b2']
    const tail = await toolway(['audit', 'tail', '--postgres', '--json', '-n', '3'], place)
    expect(tail).toMatchObject({ code: 0, stderr: '' })
    expect(callsIn(tail.stdout)).toEqual(all.slice(1))
    expect(JSON.parse(tail.stdout.split('\n')[0] as string)).toMatchObject({
      replica: expect.stringMatching(/^[\da-f-]{36}$/),
      arguments: { of: 'b1' },
    })
    const some = await toolway(['audit', 'tail', '--postgres', '--tool', 'files.read_b'], place)
    expect(some.stdout.match(/files\.read_b/g)).toHaveLength(2)
    expect(some.stdout).not.toContain('read_a')

    expect(callsIn((await toolway(['audit', 'export', '--postgres'], place)).stdout)).toEqual(all)
    const records = callsIn((await toolway(['audit', 'export', '--postgres', '--raw'], place)).stdout)
    expect(records.filter(Boolean)).toEqual(all.flatMap((call) => [call, call]))
    const csv = await toolway(['audit', 'export', '--postgres', '--format', 'csv', '--out', 'all.csv'], place)
    expect(csv.stderr).toContain('Wrote all.csv (4 operations).')
    const [heading, first] = (await readFile(join(place.cwd, 'all.csv'), 'utf8')).split('\r\n')
    expect(heading).toMatch(/,host,replica$/)
    expect(first).toMatch(/read_a.*,[\da-f-]{36}$/)
  })

  test('audit tail --postgres -f continues with records of all replicas', async () => {
    const url = await server.database()
    await using place = await configured(url)
    await using replicas = await twoReplicas(url, place.cwd)
    const stop = new AbortController()
    const words = ['audit', 'tail', '--postgres', '--json', '-f', '-n', '1']
    const { shell, stdout } = recordedShell({ ...place, interrupted: stop.signal })
    const running = run(words, shell)
    await until(() => stdout().includes('"b2"'), { what: 'the last one' })
    replicas.a.call('a3')
    replicas.b.call('b3')
    await until(() => ['"a3"', '"b3"'].every((call) => stdout().includes(call)), { what: 'the new ones' })
    stop.abort()
    await running
    expect(callsIn(stdout()).sort()).toEqual(['a3', 'b2', 'b3'])
  })

  test('policy replay --postgres decides about the calls of all replicas', async () => {
    const url = await server.database()
    await using place = await folder({
      'toolway.json': { stores: { path: './state', postgres: { url } } },
      'proposed.json': {
        mcpServers: { files: { command: 'x' } },
        agents: { dev: { allow: { servers: ['files'] } } },
        policy: { blockedTools: ['files.read_b'] },
      },
    })
    await using _ = await twoReplicas(url, place.cwd)
    const replay = (...words: string[]) =>
      toolway(['policy', 'replay', '--policy', 'proposed.json', '--postgres', '--json', ...words], place)
    const { calls, denied } = JSON.parse((await replay()).stdout)
    expect({ calls, denied }).toMatchObject({ calls: 4, denied: [{ tool: 'read_b', calls: 2 }] })
    expect(JSON.parse((await replay('--until', '1h')).stdout)).toMatchObject({ calls: 0 })
  })

  test('commands with --postgres never read from another source', async () => {
    await using none = await folder({ 'toolway.json': {}, 'p.json': {} })
    await using away = await configured('postgres://nobody:hunter2@127.0.0.1:1/none')
    await using empty = await configured(await server.database())
    for (const words of [
      ['audit', 'tail'],
      ['audit', 'query'],
      ['audit', 'export'],
      ['audit', 'verify'],
      ['policy', 'replay', '--policy', join(none.cwd, 'p.json')],
    ]) {
      const said = async (place: { cwd: string }) => toolway([...words, '--postgres'], place)
      expect(await said(none)).toMatchObject({ code: 2, stderr: expect.stringContaining('Set stores.postgres.url') })
      const answer = await said(away)
      expect(answer).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('127.0.0.1:1/none') })
      expect(answer.stderr).not.toContain('hunter2')
      expect(await said(empty)).toMatchObject({ code: 3, stderr: expect.stringContaining('run `toolway migrate`') })
      expect((await toolway([...words, '--postgres', '--path', 'x'], none)).code).toBe(2)
    }
    expect((await toolway(['audit', 'query', '--postgres', '--local'], empty)).code).toBe(2)
  })
})
