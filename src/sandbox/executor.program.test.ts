import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { missing, provide } from '../../tests/fixtures/debian.ts'
import { descendants } from '../../tests/fixtures/processes.ts'
import { until } from '../../tests/fixtures/until.ts'
import type { ExecutionOutcome } from '../core/executor.ts'
import { bundledChild } from './bundled-child.fixture.ts'
import { openTestExecutor, type TestExecutor } from './executor.fixture.ts'

provide('bwrap', 'bubblewrap')
const withoutBwrap = missing('bwrap')

let fixture: TestExecutor
let child: { readonly url: URL } & Disposable

beforeAll(async () => {
  child = bundledChild()
  fixture = openTestExecutor({ minIsolation: 'worker' }, { child: child.url })
  await fixture.executor.probe()
}, 60_000)

afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  child[Symbol.dispose]()
})

const timeout = 60_000
const given = ({ value, error }: ExecutionOutcome) => (value === undefined ? error : JSON.parse(value))

describe.concurrent('a program in JavaScript', { timeout }, () => {
  test.each([
    ['its last expression', '1 + 1', 2],
    ['what it returns', 'const x = 20\nreturn x + 1', 21],
    ['what it awaits', "await host('echo', '5')", '5'],
    ['what a promise gives', 'Promise.resolve([1, { a: null }])', [1, { a: null }]],
    ['what JSON has no words for', '[10n, new Map([["a", 1]]), new Set([1])]', ['10', { a: 1 }, [1]]],
    ['an error', '[new RangeError("far")]', [{ name: 'RangeError', message: 'far' }]],
  ])('S7: gives %s', async (_, code, value) => {
    expect(given(await fixture.run(code))).toEqual(value)
  })

  test('S7: a value without JSON gives no result', async () => {
    expect(await fixture.run('let x = 1; undefined')).toMatchObject({ status: 'ok', logs: '', truncated: [] })
    expect((await fixture.run('() => 1')).value).toBeUndefined()
  })

  test('S7: output is returned, also after a failure', async () => {
    const { logs, status } = await fixture.run("console.log('a', { b: 1 }); console.error(2); throw new Error('x')")
    expect({ logs, status }).toEqual({ logs: 'a {"b":1}\n2\n', status: 'error' })
  })

  test('S7: long output and results are truncated with a note', async () => {
    const { logs, value = '', truncated } = await fixture.run("console.log('é'.repeat(40000)); 'x'.repeat(300000)")
    expect(Buffer.byteLength(logs)).toBeLessThanOrEqual(65_538)
    expect(JSON.parse(value)).toMatch(/^"xxx/)
    expect(truncated).toEqual([expect.stringContaining('result'), expect.stringContaining('output')])
  })

  test('S7: a flood of lines ends the program early, also one that catches every exception', async () => {
    const { status, error, logs } = await fixture.run("for (;;) try { console.log('flood') } catch {}")
    expect({ status, error }).toMatchObject({ status: 'error', error: { name: 'OutputError' } })
    expect(Buffer.byteLength(logs)).toBeLessThanOrEqual(65_538)
  })

  test('S7: recursion in the engine is an exception that the program can catch', async () => {
    const deep = 'let deep = {}; for (let i = 0; i < 20000; i++) deep = { deep }\n'
    expect(
      given(await fixture.run(`${deep}console.log(deep); try { JSON.stringify(deep) } catch (e) { e.name }`)),
    ).toBe('RangeError')
  })

  test.each([
    ['an exception', '\n\n  null.x', { name: 'TypeError', line: 3, column: 3 }],
    ['one after a return', '\nreturn nothing', { name: 'ReferenceError', line: 2 }],
    [
      'one in a function',
      'function f() {\n  throw new RangeError("x")\n}\nf()',
      { name: 'RangeError', message: 'x', line: 2 },
    ],
    ['a fault of its text', 'let x = 1\nlet y = ;', { name: 'SyntaxError', line: 2, column: 9 }],
    ['a type', 'let x = 1\nlet y: number = 2', { line: 2, message: expect.stringContaining('"typescript"') }],
    ['a fault of what it reads', 'JSON.parse("x")', { line: 1, message: expect.not.stringContaining('typescript') }],
    [
      'an import',
      "\nimport fs from 'node:fs'",
      { line: 2, message: expect.stringContaining('Modules are not supported') },
    ],
    ['a refusal', "\nawait host('refuse', '')", { name: 'HostRefusal', code: 'DENIED_BY_POLICY', line: 2 }],
    [
      'a failure of the host',
      "await host('fail', '')",
      { code: 'INTERNAL', message: expect.not.stringContaining('secret') },
    ],
  ])('S7: %s is reported with its position', async (_, code, error) => {
    expect(await fixture.run(code, { prelude: 'const one = 1\nconst two = 2\n' })).toMatchObject({
      status: 'error',
      error,
    })
  })

  test('S7: lines of the prelude do not count, and its names are defined', async () => {
    const prelude = 'const call = (name) =>\n  host(name, "")\n'
    expect(given(await fixture.run('\nawait call("refuse")', { prelude }))).toMatchObject({ line: 2 })
  })

  test('B9: a refusal can be caught, with its code', async () => {
    const code = "try { await host('refuse', '') } catch (e) { [e.code, e.message, e instanceof HostRefusal] }"
    expect(given(await fixture.run(code))).toEqual(['DENIED_BY_POLICY', 'No rule allows that.', true])
  })

  test('B9: at most eight calls run in parallel', async () => {
    let [running, most] = [0, 0]
    const gates: (() => void)[] = []
    const host = async () => {
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => {
        gates.push(resolve)
        if (running === 8) for (const open of gates.splice(0)) open()
      })
      running--
      return '1'
    }
    const code = "(await Promise.all(Array.from({ length: 24 }, () => host('x', '')))).length"
    expect(given(await fixture.run(code, { host }))).toBe(24)
    expect(most).toBe(8)
  })

  test('B9: calls that are not awaited still run', async () => {
    const done: string[] = []
    const host = async (name: string) => `${done.push(name)}`
    await fixture.run("host('first', ''); host('second', ''); 1", { host })
    expect(done).toEqual(['first', 'second'])
  })

  test('F10: calls in flight are cancelled at the deadline, and what was printed is kept', async () => {
    const clock = createManualClock()
    await using timed = openTestExecutor({ minIsolation: 'worker' }, { child: child.url, tiers: ['worker'], clock })
    const host = (_name: string, _input: string, signal: AbortSignal) => {
      clock.advance(5000)
      return Promise.resolve(`${signal.aborted}`)
    }
    const outcome = await timed.run("console.log('asked'); await host('x', '')", { host, timeoutMs: 5000 })
    expect(outcome).toMatchObject({
      status: 'timeout',
      logs: 'asked\n',
      error: { name: 'TimeoutError' },
      durationMs: 5000,
    })
  })

  test('F10: the caller can cancel it', async () => {
    const stop = new AbortController()
    const host = async () => {
      stop.abort()
      return new Promise<string>(() => {})
    }
    expect(await fixture.run("await host('x', '')", { host, signal: stop.signal })).toMatchObject({
      status: 'cancelled',
    })
    expect(await fixture.run('1', { signal: stop.signal })).toMatchObject({
      status: 'cancelled',
      isolation: undefined,
    })
  })

  test('S7: timers wait', async () => {
    expect(given(await fixture.run('await new Promise((done) => setTimeout(done, 5, 7))'))).toBe(7)
  })

  test.each([
    ['a function', 'async function main() {\n  throw new Error("lost")\n}\nmain()\n"done"', 'Error: lost (line 2)'],
    ['a call', 'host("refuse", "")\n"done"', 'HostRefusal: No rule allows that. (line 1)'],
    ['a timer', 'setTimeout(() => missing(), 0)\nawait new Promise((done) => setTimeout(done, 20))\n"done"', 'missing'],
    ['code after a call', '(async () => { await host("echo", "1"); missing() })()\nreturn "done"', '(line 1)'],
  ])('S7: an error in %s that nothing awaits is printed', async (_, code, text) => {
    const { value, logs } = await fixture.run(code)
    expect(value).toBe('"done"')
    expect(logs).toMatch(/^Uncaught \w+: [^\n]*\n$/)
    expect(logs).toContain(text)
  })

  test('S7: an error that the program handles, or that ends it, is not printed as well', async () => {
    const handled = 'const failed = host("refuse", "")\nawait host("echo", "")\nawait failed.catch(() => 1)'
    expect(await fixture.run(handled)).toMatchObject({ value: '1', logs: '' })
    expect(await fixture.run('await host("refuse", "")')).toMatchObject({ status: 'error', logs: '' })
  })

  test('S7: the error that keeps a program waiting is printed, and no later program prints it', async () => {
    const lost = 'await new Promise((done) => { (async () => { throw new Error("lost.") })().then(done) })'
    const environment = 'lost'
    const { status, logs } = await fixture.run(lost, { environment })
    expect([status, logs]).toEqual(['error', 'Uncaught Error: lost. (line 1). Await the promise to handle it.\n'])
    expect(await fixture.run('1', { environment })).toMatchObject({ value: '1', logs: '' })
  })

  test('S7: a program that ends before its timers says so', async () => {
    expect((await fixture.run('setTimeout(() => {}, 1000); 1')).logs).toContain('before 1 of its timers')
    expect((await fixture.run('clearTimeout(setTimeout(() => {}, 1000)); 1')).logs).toBe('')
  })

  test('S7: a promise that can never settle is an immediate error', async () => {
    expect(await fixture.run('await new Promise(() => {})')).toMatchObject({
      error: { message: expect.stringContaining('promise') },
    })
  })
})

describe.concurrent('a program in TypeScript', { timeout }, () => {
  const run = (code: string) => fixture.run(code, { language: 'typescript' })

  test('S7: types are removed without changing positions', async () => {
    expect(given(await run('interface A { a: number }\nconst x: A = { a: 1 }\nx.a satisfies number'))).toBe(1)
    expect(given(await run('return 5 as number'))).toBe(5)
    expect(given(await run('type A = {\n  a: 1\n}\nconst x: A = null!\nx.a'))).toMatchObject({ line: 5, column: 1 })
  })

  test('S7: syntax errors have a position', async () => {
    expect(given(await run('let a = 1\nlet b: number[ = 4'))).toMatchObject({
      name: 'SyntaxError',
      line: 2,
      column: 16,
    })
    expect(given(await run('\nenum A { B }'))).toMatchObject({ name: 'SyntaxError', line: 2 })
  })
})

describe.skipIf(withoutBwrap)('a program in Python', { timeout, concurrent: true }, () => {
  const run = (code: string, more: object = {}) => fixture.run(code, { language: 'python', ...more })

  test.each([
    ['its last expression', 'x = 1\nx + 1', 2],
    ['what it returns', 'if True:\n  return 3', 3],
    [
      'what it awaits',
      'import asyncio\none = asyncio.create_task(ahost("echo", "1"))\nawait asyncio.gather(one, ahost("echo", "2"))',
      ['1', '2'],
    ],
    ['what it is answered', 'host("echo", "1")', '1'],
    ['what JSON has no words for', '[{1}, b"x", 1+2j]', [[1], 'x', '(1+2j)']],
  ])('S7: gives %s', async (_, code, value) => {
    expect(given(await run(code))).toEqual(value)
  })

  test('S7: prints, and errors have a position', async () => {
    expect(await run('print("a", 1)\n\n1 / 0', { prelude: 'a = 1\n' })).toMatchObject({
      status: 'error',
      logs: 'a 1\n',
      error: { name: 'ZeroDivisionError', line: 3, column: 1 },
    })
    expect(given(await run('a = 1\nb = (\n'))).toMatchObject({ name: 'SyntaxError', line: 2 })
    const mute = 'class Mute(Exception):\n  def __str__(self): raise self\nraise Mute()'
    expect(given(await run(mute))).toMatchObject({ name: 'Mute', line: 3 })
    expect(given(await run('\nhost("refuse", "")'))).toMatchObject({ code: 'DENIED_BY_POLICY', line: 2 })
  })

  test('S7: a flood of lines ends the program early', async () => {
    const code = "while True:\n  try: print('flood')\n  except Exception: pass"
    expect(given(await run(code))).toMatchObject({ name: 'OutputError' })
  })

  test('S7: makes parallel host calls in threads', async () => {
    const code = `from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool: found = list(pool.map(lambda n: host('echo', str(n)), range(8)))
found`
    expect(given(await run(code))).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'])
  })
})

describe('files and hosts', { timeout }, () => {
  test('S7: only allowed folders can be read', async () => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), 'toolway-files-')))
    mkdirSync(join(base, 'open'), { mode: 0o755 })
    mkdirSync(join(base, 'open-secret'))
    writeFileSync(join(base, 'open/a.txt'), 'hello')
    writeFileSync(join(base, 'open-secret/b.txt'), 'secret')
    symlinkSync(join(base, 'open-secret/b.txt'), join(base, 'open/link'))
    await using narrow = openTestExecutor(
      { minIsolation: 'worker', allowPaths: [join(base, 'open')], allowNetwork: ['api.example.com'] },
      { child: child.url, fetch: async ({ url }) => ({ status: 200, headers: {}, body: JSON.stringify({ url }) }) },
    )
    const read = (path: string) => narrow.run(`await readText(${JSON.stringify(join(base, path))})`)
    expect(given(await read('open/a.txt'))).toBe('hello')
    for (const path of ['open/link', 'open-secret/b.txt', 'open/../open-secret/b.txt', 'open', 'open/none']) {
      expect(given(await read(path)), path).toMatchObject({ code: 'INVALID_PATH' })
    }
    const ask = (url: string) => narrow.run(`await (await fetch('${url}')).json()`)
    expect(given(await ask('https://api.example.com/x'))).toEqual({ url: 'https://api.example.com/x' })
    for (const url of ['https://example.com/', 'https://api.example.com.evil.test/', 'file:///etc/passwd']) {
      expect(given(await ask(url)), url).toMatchObject({ code: 'UNSAFE_URL' })
    }
    const posing = `await fetch('https://api.example.com/', { headers: { Host: 'evil.test' } })`
    expect(given(await narrow.run(posing))).toMatchObject({ code: 'UNSAFE_URL' })
    rmSync(base, { recursive: true })
  })
})

describe('requirements to run', { timeout }, () => {
  test('S7: refused if the required isolation is unavailable', async () => {
    await using strict = openTestExecutor({ minIsolation: 'bwrap' }, { child: child.url, tiers: ['process', 'worker'] })
    expect(await strict.run('1')).toMatchObject({
      status: 'refused',
      isolation: undefined,
      error: { message: expect.stringContaining('minIsolation') },
    })
    expect(await strict.executor.probe()).toMatchObject({ tier: undefined, languages: [] })
  })

  test('S7: Python without bwrap and disabled languages are refused', async () => {
    await using other = openTestExecutor(
      { minIsolation: 'worker', languages: ['python'] },
      { child: child.url, tiers: ['worker'] },
    )
    expect(await other.run('1', { language: 'python' })).toMatchObject({
      status: 'refused',
      error: { message: expect.stringContaining('Python requires bwrap') },
    })
    expect(await other.run('1')).toMatchObject({
      error: { message: 'javascript is not enabled in sandbox.languages.' },
    })
  })

  test('B7: running and waiting programs are limited, in all and per owner', async () => {
    await using busy = openTestExecutor(
      { minIsolation: 'worker' },
      { child: child.url, tiers: ['worker'], limits: { runs: 1, waiting: 2 } },
    )
    const stop = new AbortController()
    const first = busy.run("await host('never', '')", { signal: stop.signal })
    const second = busy.run('2')
    const refused = { status: 'refused', error: { message: expect.stringContaining('Too many programs') } }
    expect(await busy.run('3')).toMatchObject(refused)
    const other = busy.run('4', { owner: 'another' })
    expect(await busy.run('5', { owner: 'a third' })).toMatchObject(refused)
    stop.abort()
    expect(await first).toMatchObject({ status: 'cancelled' })
    expect(await second).toMatchObject({ status: 'ok', value: '2' })
    expect(await other).toMatchObject({ status: 'ok', value: '4' })
  })

  test('S7: the sources can run as a child, and leave nothing behind', async () => {
    const before = descendants(process.pid)
    const plain = openTestExecutor({ minIsolation: 'process' })
    expect(await plain.run('6 * 7')).toMatchObject({ status: 'ok', value: '42' })
    const running = plain.run('for (;;);')
    await plain[Symbol.asyncDispose]()
    expect(await running).toMatchObject({ status: 'cancelled' })
    const left = () => descendants(process.pid).filter((pid) => !before.includes(pid))
    await until(() => left().length === 0, { what: 'the end of its processes' })
    expect(await plain.run('1')).toMatchObject({ status: 'refused' })
  })
})
