import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { silentLog } from '../../src/core/log.ts'
import { createGateway } from '../../src/gateway.ts'
import { writeConfig } from '../fixtures/config-file.ts'
import { temporaryFolder } from '../fixtures/folders.ts'
import { startFixture } from './fixture/http.ts'
import { expectedFailures, judge, lost } from './judge.ts'
import { type Revision, runSuite, type ScenarioResult } from './run.ts'

const requiredBy: [Revision, number][] = [
  ['2025-11-25', 30],
  ['2026-07-28', 37],
]

describe.each(requiredBy)('conformance %s', (requirements, count) => {
  const open = new AsyncDisposableStack()
  let direct: ScenarioResult[]
  let through: ScenarioResult[]

  beforeAll(async () => {
    const fixture = open.use(await startFixture())
    direct = await runSuite({ url: fixture.url, requirements })
    const url = await toolwayInFrontOf(fixture.url, open)
    through = await runSuite({ url, requirements })
  }, 180_000)
  afterAll(() => open.disposeAsync())

  test('B2: the fixture itself passes every scenario, so that what is lost on the way is not its fault', () => {
    expect(direct.filter(({ required }) => required)).toHaveLength(count)
    expect(judge(direct, [])).toEqual({ unexpected: [], stale: [] })
  })

  test('B2: through Toolway every required scenario passes, and no check is lost against the direct run', () => {
    expect(through.filter(({ required }) => required)).toHaveLength(count)
    expect(judge(through, expectedFailures('server', requirements))).toEqual({ unexpected: [], stale: [] })
    expect(lost(direct, through)).toEqual([])
  })
})

/** One server and no renaming, because the suite knows its entries by name; no token, because it cannot send one. */
async function toolwayInFrontOf(url: string, open: AsyncDisposableStack): Promise<string> {
  const folder = open.use(await temporaryFolder())
  const file = await writeConfig(
    folder.path,
    {
      server: { port: 0 },
      auth: { token: 'none' },
      naming: { strategy: 'flat' },
      defaults: { expose: 'direct' },
      native: { tools: [] },
      mcpServers: { fixture: { url } },
    },
    'conformance',
  )
  const loaded = await loadConfig({ paths: [file], env: process.env, cwd: folder.path })
  const gateway = open.use(await createGateway(loaded, { log: silentLog }))
  return (await gateway.listen()).url
}
