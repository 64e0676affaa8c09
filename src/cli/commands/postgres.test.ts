import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, type PostgresServer, postgresProgram, startPostgres } from '../../../tests/fixtures/postgres.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { openReplica } from '../../stores/postgres/replica.fixture.ts'
import { postgresChecks } from '../doctor/postgres.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../shell.fixture.ts'

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
    const found = async (url: string, migrate: 'auto' | 'manual') => {
      const [check] = postgresChecks({ stores: { postgres: { url, migrate, disabled: false } } } as never, 'toolway')
      return check?.run(AbortSignal.timeout(5_000))
    }
    const url = await server.database()
    expect(await found(url, 'auto')).toMatchObject({ status: 'ok', message: expect.stringContaining('next start') })
    expect(await found(url, 'manual')).toMatchObject({ status: 'problem', remedy: 'toolway migrate' })
    expect(await found('postgres://127.0.0.1:1/none', 'auto')).toMatchObject({ status: 'warning' })
    await using place = await configured(url)
    await toolway(['migrate'], place)
    expect(await found(url, 'manual')).toMatchObject({ status: 'ok', message: expect.stringContaining('up to date') })
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
    expect(changed).toMatchObject({ code: 1, stdout: expect.stringContaining('its hash does not fit it') })

    await server.stop()
    try {
      const away = await toolway(['audit', 'query', '--json'], here)
      expect(away.stderr).toContain('only what this machine recorded')
      expect(JSON.parse(away.stdout)).toMatchObject({ source: 'local', rows: [{ call: 'here' }] })
      expect(await toolway(['audit', 'query', '--before', String(next)], here)).toMatchObject({ code: 1 })
    } finally {
      await server.start()
    }
  })
})
