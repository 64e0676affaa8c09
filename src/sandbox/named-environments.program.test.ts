import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { missing, provide } from '../../tests/fixtures/debian.ts'
import { commandLine, descendants } from '../../tests/fixtures/processes.ts'
import { until } from '../../tests/fixtures/until.ts'
import type { Language } from '../core/executor.ts'
import { createBudgets } from '../core/limits/budget.ts'
import { bundledChild } from './bundled-child.fixture.ts'
import { Environments } from './environments.ts'
import { openTestExecutor, type TestExecutor } from './executor.fixture.ts'
import { type Limits, type SandboxChild, sandboxLimits } from './runtime.ts'

provide('bwrap', 'bubblewrap')
const timeout = 60_000

let fixture: TestExecutor
let child: { readonly url: URL } & Disposable

beforeAll(async () => {
  child = bundledChild()
  const limits = { cpuMs: 1000, interpreters: 1 }
  fixture = openTestExecutor({ minIsolation: 'worker', memory: '32MiB' }, { child: child.url, limits })
}, timeout)

afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  child[Symbol.dispose]()
})

/** Whether the interpreters of this process run (R), wait (S) or stand still (T). */
const interpreterStates = () =>
  descendants(process.pid)
    .filter((pid) => commandLine(pid).includes('-I -S -B'))
    .map((pid) => /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1])

interface Words {
  readonly language: Language
  readonly remember: string
  readonly recall: string
  readonly loop: string
  readonly bomb: string
}

const javascript: Words = {
  language: 'javascript',
  remember: 'let secret = 41; const bump = () => ++secret',
  recall: 'bump()',
  loop: 'for (;;);',
  bomb: 'const a = []; for (;;) a.push(new Uint8Array(4e6))',
}
const python: Words = {
  language: 'python',
  remember: 'secret = 41\ndef bump():\n  global secret\n  secret += 1\n  return secret',
  recall: 'bump()',
  loop: 'while True: pass',
  bomb: "a = 'x' * 10**10",
}

describe.each([javascript, ...(missing('bwrap') ? [] : [python])])('in $language', { timeout }, (words) => {
  const { language } = words
  const run = (environment: string | undefined, code: string) =>
    fixture.run(code, { language, ...(environment !== undefined && { environment }) })

  test('S7: variables persist per environment key', async () => {
    await run('alice/notes', words.remember)
    expect(await run('alice/notes', words.recall)).toMatchObject({ value: '42' })
    expect(await run('alice/notes', words.recall)).toMatchObject({ value: '43' })
    for (const other of ['bob/notes', 'alice/other', 'alice/notes/', undefined]) {
      expect(await run(other, words.recall), other).toMatchObject({ status: 'error' })
    }
  })

  test('S7: an exception keeps variables; a loop or a memory bomb resets them with a reason', async () => {
    await run('a', words.remember)
    expect(await run('a', 'undefined_name')).toMatchObject({ status: 'error' })
    expect(await run('a', words.recall)).toMatchObject({ value: '42' })
    expect(await run('a', words.loop)).toMatchObject({ status: 'timeout' })
    expect(await run('a', words.recall)).toMatchObject({
      status: 'error',
      reset: expect.stringContaining('CPU time'),
    })
    await run('a', words.remember)
    expect(await run('a', words.bomb)).toMatchObject({ status: 'out_of_memory' })
    expect(await run('a', '1')).toMatchObject({ value: '1', reset: expect.stringContaining('memory') })
    expect((await run('a', '1')).reset).toBeUndefined()
  })

  test('S7: runs in one environment are sequential', async () => {
    await run('row', words.remember)
    const values = await Promise.all(Array.from({ length: 4 }, () => run('row', words.recall)))
    expect(values.map(({ value }) => value)).toEqual(['42', '43', '44', '45'])
  })

  test('S7: the prelude runs once', async () => {
    const prelude = language === 'python' ? 'count = 0\n' : 'let count = 0\n'
    const step = language === 'python' ? 'count += 1\ncount' : '++count'
    const again = () => fixture.run(step, { language, prelude, environment: 'prelude' })
    expect((await again()).value).toBe('1')
    expect((await again()).value).toBe('2')
  })
})

describe('declarations in a JavaScript environment', { timeout }, () => {
  const run = (code: string, environment: string) => fixture.run(code, { environment })

  test('S7: a program that failed can be corrected and run again with the same names', async () => {
    const failed = "const data = await host('refuse', '')\nclass Box {}\nlet { a } = data; data"
    expect(await run(failed, 'retry')).toMatchObject({ status: 'error', error: { line: 1 } })
    const corrected = "const data = await host('echo', '{}')\nclass Box {}\nlet { a = 1 } = data; [data, a, typeof Box]"
    expect(await run(corrected, 'retry')).toMatchObject({ value: '["{}",1,"function"]' })
    expect(await run(corrected, 'retry')).toMatchObject({ value: '["{}",1,"function"]' })
    expect(await run('const n: number = a; n', 'retry')).toMatchObject({ error: { name: 'SyntaxError' } })
  })

  test('S7: a variable that is declared again without a value has none', async () => {
    await run('let best = 5, count = 1\nlet other', 'again')
    expect(await run('let first = 1, best, count\n[best, count, typeof other]', 'again')).toMatchObject({
      value: '[null,null,"undefined"]',
    })
  })
})

describe.skipIf(missing('bwrap'))('an interpreter that is kept', { timeout }, () => {
  test('S7: a kept interpreter is frozen between runs, with all its threads', async () => {
    const run = (code: string) => fixture.run(code, { language: 'python', environment: 'threads' })
    await run(`import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()`)
    await until(() => interpreterStates().includes('T'), { what: 'the interpreter to stand still' })
    expect(await run('threading.active_count() > 1')).toMatchObject({ value: 'true' })
  })

  test('S7: a kept interpreter is evicted for others, with a reason', async () => {
    const run = (environment: string, code: string) => fixture.run(code, { language: 'python', environment })
    await run('old', 'x = 1')
    await run('new', 'x = 1')
    expect(await run('old', 'x')).toMatchObject({ status: 'error', reset: expect.stringContaining('make room') })
  })
})

/** The JavaScript processes of this process that stand still. */
const frozenEngines = () =>
  descendants(process.pid).filter(
    (pid) =>
      commandLine(pid).includes('--wasm-tiering-budget') && /\) T/.test(readFileSync(`/proc/${pid}/stat`, 'latin1')),
  )

describe.each(['bwrap', 'process'] as const)('a JavaScript engine that is kept in tier %s', { timeout }, (tier) => {
  const open = (limits: Partial<Limits> = {}) =>
    openTestExecutor({ minIsolation: 'process', memory: '32MiB' }, { child: child.url, tiers: [tier], limits })
  const isMissing = tier === 'bwrap' && missing('bwrap')

  test.skipIf(isMissing)('S7: the process serves the next programs of its environment, and no other', async () => {
    await using own = open()
    const others = new Set(frozenEngines())
    const engines = () => frozenEngines().filter((pid) => !others.has(pid))
    const run = (code: string, more: object) => own.run(code, { language: 'typescript', ...more })
    const settledEngines = () => until(() => engines().length > 0, { what: 'the engine to stand still' })
    await run('const a: number = 1', { environment: 'a' })
    await settledEngines()
    const [engine] = engines()
    for (const count of [2, 3, 4]) {
      expect(await run('var n: number = (globalThis.n ?? 1) + 1; n', { environment: 'a' })).toMatchObject({
        value: `${count}`,
        isolation: tier,
      })
      await settledEngines()
      expect(engines()).toEqual([engine])
    }
    for (const other of ['b', undefined]) {
      expect(await run('typeof n', { environment: other, owner: 'another' })).toMatchObject({ value: '"undefined"' })
      expect(engines()).toContain(engine)
    }
  })

  test.skipIf(isMissing)('S7: each program has its own limits, and its values are not kept', async () => {
    await using own = open({ calls: 3 })
    const code =
      "await Promise.all([1, 2, 3].map(() => host('echo', '1')))\nconsole.log('x'.repeat(40000)); 'y'.repeat(2e6).length"
    for (let run = 0; run < 20; run++)
      expect(await own.run(code, { environment: 'a' })).toMatchObject({ status: 'ok', value: '2000000', truncated: [] })
    for (let run = 0; run < 20; run++)
      expect(await own.run("'z'.repeat(2e6)", { environment: 'a' })).toMatchObject({ status: 'ok' })
  })

  test.skipIf(isMissing)('S7: an environment whose process had to go continues from its image', async () => {
    await using own = open({ engines: 1 })
    for (const environment of ['a', 'b']) await own.run(`var kept = '${environment}'`, { environment })
    for (const environment of ['a', 'b'])
      expect(await own.run('kept', { environment })).toMatchObject({ value: `"${environment}"`, reset: undefined })
  })

  test.skipIf(isMissing)('S7: a process is replaced before the kernel ends it for its total CPU time', async () => {
    await using own = open({ cpuMs: 1000 })
    const code = 'var n = (globalThis.n ?? 0) + 1; for (const end = Date.now() + 900; Date.now() < end; ); n'
    for (let run = 1; run <= 9; run++)
      expect(await own.run(code, { environment: 'a' })).toMatchObject({ value: `${run}`, reset: undefined })
  })
})

describe('kept environments', () => {
  const bytes = (length: number) => ({ memory: Buffer.alloc(length) })

  test('S7: an idle environment is dropped', async () => {
    const clock = createManualClock()
    await using environments = new Environments(sandboxLimits, undefined, clock)
    environments.keep('a', 'anna', bytes(1))
    clock.advance(sandboxLimits.idleMs)
    expect(environments.take('a')).toEqual({ reset: expect.stringMatching(/idle for 10 min/) })
    expect(environments.take('a')).toEqual({})
    environments.keep('a', 'anna', bytes(1))
    await environments[Symbol.asyncDispose]()
    expect(clock.pending).toBe(0)
  })

  test('S7: an idle engine is dropped, or one that ends, and its environment continues from the image', async () => {
    const clock = createManualClock()
    await using environments = new Environments(sandboxLimits, undefined, clock)
    const engine = () => {
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      return { ended, kill: async () => resolve() } as SandboxChild
    }
    environments.keep('a', 'anna', { ...bytes(1), child: engine() })
    expect(environments.hasChild('a')).toBe(true)
    clock.advance(sandboxLimits.engineIdleMs)
    expect(environments.hasChild('a')).toBe(false)
    const child = engine()
    environments.keep('a', 'anna', { ...bytes(2), child })
    await child.kill()
    await child.ended
    expect(environments.take('a')).toMatchObject({ memory: Buffer.alloc(2), child: undefined, reset: undefined })
    expect(clock.pending).toBe(0)
  })

  test('S7: environments stay within their limits; the oldest goes first', async () => {
    const limits = { ...sandboxLimits, rememberedBytes: 4, environments: 3 }
    await using environments = new Environments(limits, undefined, createManualClock())
    for (const key of ['a', 'b', 'c', 'd']) environments.keep(key, key, bytes(1))
    expect(environments.take('a').reset).toMatch(/make room/)
    environments.keep('e', 'e', bytes(3))
    expect(['b', 'c', 'd', 'e'].map((key) => environments.take(key).memory?.length)).toEqual([
      undefined,
      undefined,
      1,
      3,
    ])
  })

  test('V6: the environments of one owner make room for each other before they use up those of all', async () => {
    const limits = { ...sandboxLimits, environments: 4 }
    const budgets = createBudgets()
    await using environments = new Environments(limits, budgets, createManualClock())
    environments.keep('b', 'bert', bytes(1))
    for (const key of ['a1', 'a2', 'a3', 'a4']) environments.keep(key, 'anna', bytes(1))
    const counted = budgets.report().find(({ name }) => name === 'code_environments')
    expect(counted).toMatchObject({ used: 4, perCaller: 3, largest: 3, refused: 1 })
    expect(environments.take('a1').reset).toMatch(/make room/)
    expect(environments.take('b').memory).toHaveLength(1)
  })
})
