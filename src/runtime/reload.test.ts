import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import type { LoadedConfig } from '../config/load.ts'
import { configSchema } from '../config/schema.ts'
import { type Log, silentLog } from '../core/log.ts'
import { compareConfigs } from './config-difference.ts'
import { Reload, ReloadHistory } from './reload.ts'

const loadedOf = (written: object = {}, files: readonly string[] = []) =>
  ({ config: configSchema.parse(written), files: files.map((path) => ({ path })) }) as unknown as LoadedConfig

function setUp(
  load: () => Promise<LoadedConfig>,
  apply?: (loaded: LoadedConfig) => Promise<void>,
  current = loadedOf(),
  log: Log = silentLog,
) {
  const clock = createManualClock()
  const applied: LoadedConfig[] = []
  const reload = new Reload({
    history: new ReloadHistory(),
    current: () => current,
    load,
    apply: async (loaded) => {
      await apply?.(loaded)
      applied.push(loaded)
      current = loaded
    },
    clock,
    log,
  })
  return { reload, applied, clock, current: () => current }
}

describe('G8: a reload', () => {
  test('applies a valid configuration and reports the difference', async () => {
    const next = loadedOf({ mcpServers: { a: { command: 'x' } } })
    const { reload, applied } = setUp(async () => next)
    await reload.now()
    expect(applied).toEqual([next])
    expect(reload.history.status()).toMatchObject({
      attempts: 1,
      successes: 1,
      last_error: null,
      last_success_at: expect.stringMatching(/^\d{4}-/),
      history: [{ difference: { servers: { added: ['a'], removed: [], changed: [] }, sections: [] } }],
    })
  })

  test.each([
    ['cannot be read', async () => Promise.reject(new Error('line 3: no such key')), undefined],
    ['cannot be put into force', async () => loadedOf(), async () => Promise.reject(new Error('line 3: no such key'))],
  ] as const)('that %s leaves the one before in force, with its reason and time', async (_, load, apply) => {
    const { reload, applied } = setUp(load, apply)
    await reload.now()
    expect(applied).toEqual([])
    expect(reload.history.status()).toMatchObject({
      attempts: 1,
      successes: 0,
      last_error: 'line 3: no such key',
      last_error_at: expect.stringMatching(/^\d{4}-/),
      last_success_at: null,
    })
  })

  test('is logged with its outcome, also if it restores what was in force before a failed one', async () => {
    let load = () => Promise.reject<LoadedConfig>(new Error('line 3: no such key'))
    const log = createKeptLog()
    const { reload } = setUp(() => load(), undefined, loadedOf(), log)
    await reload.now()
    load = async () => loadedOf()
    await reload.now()
    expect(log.lines.map(({ message }) => message)).toEqual([
      'reload failed; the previous configuration stays active',
      'configuration reloaded',
    ])
  })

  test('runs one at a time, and reads later changes after it', async () => {
    const gates: PromiseWithResolvers<LoadedConfig>[] = []
    const load = () => {
      const gate = Promise.withResolvers<LoadedConfig>()
      gates.push(gate)
      return gate.promise
    }
    const { reload, applied } = setUp(load)
    const first = reload.now()
    const others = [reload.now(), reload.now()]
    expect(gates).toHaveLength(1)
    gates[0]?.resolve(loadedOf())
    await new Promise(setImmediate)
    expect(gates).toHaveLength(2)
    gates[1]?.resolve(loadedOf())
    await Promise.all([first, ...others])
    expect(applied).toHaveLength(2)
    expect(reload.history.status().attempts).toBe(2)
  })

  test('changes nothing if a file was removed: its rules must not be dropped', async () => {
    const [there, gone] = [import.meta.filename, `${import.meta.filename}.gone`]
    let found = [there]
    const { reload, applied } = setUp(async () => loadedOf({}, found), undefined, loadedOf({}, [there, gone]))
    await reload.now()
    expect(applied).toEqual([])
    expect(reload.history.status().last_error).toContain(gone)
    // Another file may come before one that is still there.
    found = ['/elsewhere/toolway.yaml', gone]
    await reload.now()
    expect(applied).toHaveLength(1)
  })

  test('does not apply settings that need a restart, and reports them', async () => {
    const started = { server: { port: 1 }, stores: { path: '/one', redis: { url: 'redis://one' } } }
    const rewritten = { ...{ server: { port: 2 }, stores: { path: '/two' } }, audit: { redact: ['x'], retain: '1d' } }
    const { reload, applied } = setUp(async () => loadedOf(rewritten), undefined, loadedOf(started))
    for (const [time, sections] of [['audit'], []].entries()) {
      await reload.now()
      expect(reload.history.status().history[0]?.difference?.sections).toEqual(sections)
      expect(reload.history.status().history[0]?.difference?.atNextStart, `after ${time}`).toEqual([
        'server.port',
        'stores.path',
        'stores.redis',
        'audit.retain',
      ])
    }
    expect(applied.at(-1)?.config).toEqual(loadedOf({ ...started, audit: { redact: ['x'] } }).config)
  })

  test('keeps the last twenty attempts', async () => {
    const { reload } = setUp(async () => loadedOf())
    for (let count = 0; count < 30; count++) await reload.now()
    expect(reload.history.status()).toMatchObject({ attempts: 30, successes: 30 })
    expect(reload.history.status().history).toHaveLength(20)
  })
})

test('G8: a difference names servers, sections, and settings that need a restart', () => {
  const before = configSchema.parse({
    mcpServers: { a: { command: 'x' }, b: { command: 'x' }, c: { url: 'http://c' } },
  })
  const after = configSchema.parse({
    mcpServers: { a: { command: 'x' }, b: { command: 'y' }, d: { url: 'http://d' } },
    server: { port: 9 },
    agents: { one: {} },
  })
  expect(compareConfigs(before as never, after as never).difference).toEqual({
    servers: { added: ['d'], removed: ['c'], changed: ['b'] },
    sections: ['agents'],
    atNextStart: ['server.port'],
  })
})
