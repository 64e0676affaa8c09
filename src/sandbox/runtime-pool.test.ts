import { copyFileSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import { systemClock } from '../core/clock.ts'
import { bundledChild } from './bundled-child.fixture.ts'
import { openTestExecutor } from './executor.fixture.ts'
import { type Runtime, type RuntimeSearch, type SandboxChild, sandboxLimits } from './runtime.ts'
import { createRuntimePool, type FindRuntimeOptions } from './runtime-pool.ts'

test('S7: an unavailable tier is logged once and tried again later', async () => {
  using bundle = bundledChild()
  const folder = mkdtempSync(join(tmpdir(), 'toolway-engines-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'main.mjs')
  let later = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + later }
  await using fixture = openTestExecutor(
    { minIsolation: 'worker' },
    { child: pathToFileURL(file), tiers: ['worker'], clock },
  )
  expect(await fixture.run('1')).toMatchObject({ status: 'refused' })
  later += sandboxLimits.againMs
  expect(await fixture.run('1')).toMatchObject({ status: 'refused' })
  copyFileSync(bundle.url, file)
  expect(await fixture.run('1')).toMatchObject({ status: 'refused' })
  later += sandboxLimits.againMs
  expect(await fixture.run('1')).toMatchObject({ status: 'ok', isolation: 'worker' })
  expect(fixture.log.lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('javascript') }])
})

test('S7: a working tier stays in use while a stronger one is searched', async () => {
  const child = { ready: Promise.resolve(), ended: Promise.resolve(), kill: async () => {} } as SandboxChild
  const runtimeIn = (tier: Runtime['tier']): Runtime => ({ tier, start: () => child })
  const searches: PromiseWithResolvers<RuntimeSearch>[] = []
  const search = () => {
    searches.push(Promise.withResolvers<RuntimeSearch>())
    return (searches.at(-1) as PromiseWithResolvers<RuntimeSearch>).promise
  }
  let now = 0
  const clock = { ...systemClock, monotonic: () => now }
  const options = { limits: sandboxLimits, clock, log: createKeptLog() } as unknown as FindRuntimeOptions
  await using engines = createRuntimePool(options, search)
  const tier = async () => (await engines.take('javascript', new AbortController().signal)).tier
  const found = async (result: RuntimeSearch) => {
    now += sandboxLimits.againMs
    const meanwhile = await Promise.all([tier(), tier()])
    searches.at(-1)?.resolve(result)
    await nextTurn()
    return [...meanwhile, await tier()]
  }

  const first = tier()
  searches[0]?.resolve({ runtime: runtimeIn('process'), missing: ['no bwrap'] })
  expect(await first).toBe('process')
  const busy = { runtime: runtimeIn('worker'), missing: ['no bwrap', 'too busy'] }
  expect(await found(busy)).toEqual(['process', 'process', 'process'])
  expect(await found({ runtime: runtimeIn('bwrap'), missing: [] })).toEqual(['process', 'process', 'bwrap'])
  expect(searches).toHaveLength(3)
})

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
