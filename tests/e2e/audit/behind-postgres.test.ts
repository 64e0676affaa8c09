import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { toolway as command } from '../../../src/cli/kit.fixture.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { ask, postgresProgram, startPostgres } from '../../fixtures/postgres.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'

withPart(postgresProgram(), 'F11, B10: audit verify compares the log with its copy', () => {
  test('F11: a log that was rolled back together with its marks is behind what PostgreSQL has', async () => {
    await using folder = await temporaryFolder()
    await using elsewhere = await temporaryFolder()
    await using postgres = await startPostgres()
    const url = await postgres.database()
    const config = { stores: { path: './state', postgres: { url } } }
    const [state, backup] = [join(folder.path, 'state'), join(elsewhere.path, 'state')]
    const copied = async () =>
      Number((await ask<{ n: string }>(url, 'SELECT count(*) AS n FROM toolway.records'))[0]?.n)
    const run = async () => {
      await using toolway = await startToolway(config, { folder })
      const session = await rawSession(toolway)
      await session.answer('tools/call', { name: 'hash', arguments: { data: 'x' } })
      return toolway.configFile
    }
    const verify = async (file: string) => {
      const { code, stdout } = await command(['audit', 'verify', '--json', '--config', file], {
        cwd: folder.path,
        env: process.env,
      })
      return { code, ...(JSON.parse(stdout) as { ok: boolean; problems: { kind: string; lane: string }[] }) }
    }

    const file = await run()
    expect(await verify(file)).toMatchObject({ code: 0, ok: true, problems: [] })
    await cp(state, backup, { recursive: true })
    const before = await copied()
    await run()
    await until(async () => (await copied()) > before, { what: 'the copy of the second run' })
    expect(await verify(file)).toMatchObject({ code: 0, ok: true })

    // All of the state goes back, marks and keys included: nothing on this machine can tell.
    await rm(state, { recursive: true })
    await cp(backup, state, { recursive: true })
    const rolledBack = await verify(file)
    expect(rolledBack.code).not.toBe(0)
    expect(rolledBack).toMatchObject({ ok: false, problems: [{ kind: 'rolled_back', lane: '1' }] })
  })
})
