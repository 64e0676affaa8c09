import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../../tests/fixtures/clock.ts'
import { isolatedPlugins as modules } from '../../../../tests/fixtures/programs.ts'
import { refusalOf, runTool } from '../../access.fixture.ts'
import type { Tool } from '../../define-tool.ts'
import { pluginFolder, toolSource } from '../plugins.fixture.ts'

/** The same without types, which a process takes longer to remove than to start. */
const plainSource = (...of: Parameters<typeof toolSource>): string => toolSource(...of).replace(': z.ZodObject', '')

// Processes take seconds to start where many tests run at the same time.
describe('isolated tools', { timeout: 60_000 }, () => {
  test('S2: run in one warm process of their own, with few of our variables', async () => {
    process.env.TOOLWAY_TEST_WANTED = 'wanted'
    process.env.TOOLWAY_TEST_SECRET = 'secret'
    await using folder = await pluginFolder({ modules })
    const seen =
      '({ pid: process.pid, env: Object.keys(process.env).filter((name) => name.startsWith("TOOLWAY_")), who: context.caller.agent })'
    await folder.write({
      'a.ts': toolSource('where', seen, "isolated: { env: ['TOOLWAY_TEST_WANTED'] },"),
      'b.ts': toolSource('here', '({ pid: process.pid })'),
    })
    await using plugins = await folder.load('a.ts', 'b.ts')
    const run = async (index: number) =>
      (await runTool(plugins.tools[index] as Tool, {})).body.value.structuredContent as Record<string, unknown>
    const first = await run(0)
    expect(first).toEqual({ pid: expect.any(Number), env: ['TOOLWAY_TEST_WANTED'], who: 'default' })
    expect(first.pid).not.toBe(process.pid)
    expect((await run(0)).pid).toBe(first.pid)
    expect((await run(1)).pid).toBe(process.pid)
  })

  test('S2: their refusals and failures are passed on, causes only to the log', async () => {
    await using folder = await pluginFolder({ modules })
    const fail =
      "{ if (word) throw new ToolwayError('UNSAFE_URL', 'not there', { retryAfterMs: 5 }); throw new Error('secret') }"
    const source = plainSource('fails', fail, 'isolated: true,').replace(
      '{ defineTool }',
      '{ defineTool, ToolwayError }',
    )
    await folder.write({ 'a.js': source })
    await using plugins = await folder.load('a.js')
    const tool = plugins.tools[0] as Tool
    expect(await refusalOf(runTool(tool, { word: 'x' }))).toMatchObject({
      code: 'UNSAFE_URL',
      details: { retryAfterMs: 5 },
    })
    const failure = await refusalOf(runTool(tool, {}))
    expect(failure).toMatchObject({ code: 'INTERNAL', details: { cause: expect.stringContaining('secret') } })
    expect(failure.message).not.toContain('secret')
    expect((await refusalOf(runTool(tool, { nope: 1 }))).code).toBe('INVALID_ARGUMENTS')
  })

  test('F10: one that listens to its signal stops when it is cancelled, and its process stays', async () => {
    const clock = createManualClock()
    await using folder = await pluginFolder({ clock, modules })
    const waits =
      "word ? { pid: process.pid } : new Promise((_, no) => context.signal.addEventListener('abort', () => no(new Error('stopped'))))"
    await folder.write({ 'a.js': plainSource('waits', waits, 'isolated: true,') })
    await using plugins = await folder.load('a.js')
    const tool = plugins.tools[0] as Tool
    const pid = async () => (await runTool(tool, { word: 'x' })).body.value.structuredContent
    const before = await pid()
    const stop = new AbortController()
    const call = runTool(tool, {}, { signal: stop.signal })
    setImmediate(() => stop.abort(new Error('enough')))
    await expect(call).rejects.toThrow('enough')
    expect(await pid()).toEqual(before)
    clock.advance(1_000)
    expect(await pid()).toEqual(before)
  })

  test('F10: one that hangs is ended with its process, and the next call has a new one', async () => {
    const clock = createManualClock()
    await using folder = await pluginFolder({ clock, modules })
    const hangs = '{ if (word) return { pid: process.pid }; for (;;); }'
    await folder.write({ 'a.js': plainSource('hangs', hangs, 'isolated: true,') })
    await using plugins = await folder.load('a.js')
    const tool = plugins.tools[0] as Tool
    const pid = async () => ((await runTool(tool, { word: 'x' })).body.value.structuredContent as { pid: number }).pid
    const before = await pid()
    const stop = new AbortController()
    const call = runTool(tool, {}, { signal: stop.signal })
    const beside = runTool(tool, { word: 'in vain' })
    setImmediate(() => stop.abort(new Error('enough')))
    await expect(call).rejects.toThrow('enough')
    clock.advance(1_000)
    expect((await refusalOf(beside)).code).toBe('OUTCOME_UNKNOWN')
    expect(await pid()).not.toBe(before)
    expect(() => process.kill(before, 0)).toThrow()
  })

  test('F10: a call that starts while one that hangs may still stop is run in a new process', async () => {
    const clock = createManualClock()
    await using folder = await pluginFolder({ clock, modules })
    const hangs = '{ if (word) return { pid: process.pid }; for (;;); }'
    await folder.write({ 'a.js': plainSource('hangs', hangs, 'isolated: true,') })
    await using plugins = await folder.load('a.js')
    const tool = plugins.tools[0] as Tool
    const pid = async () => ((await runTool(tool, { word: 'x' })).body.value.structuredContent as { pid: number }).pid
    const before = await pid()
    const stop = new AbortController()
    const call = runTool(tool, {}, { signal: stop.signal })
    setImmediate(() => stop.abort(new Error('enough')))
    await expect(call).rejects.toThrow('enough')
    clock.advance(200)
    const next = pid()
    const given = new AbortController()
    const givenUp = runTool(tool, { word: 'x' }, { signal: given.signal })
    given.abort(new Error('no longer needed'))
    await expect(givenUp).rejects.toThrow('no longer needed')
    clock.advance(800)
    expect(await next).not.toBe(before)
  })

  test('S2: their process is registered, so that it is ended at the next start if Toolway is killed', async () => {
    const seen: unknown[] = []
    const registerProcess = () => ({
      environment: { TOOLWAY_OWNER: 'a mark' },
      started: (pid: number) => void seen.push(pid),
      ended: () => void seen.push('ended'),
    })
    await using folder = await pluginFolder({ modules, registerProcess })
    const where = '({ pid: process.pid, mark: process.env.TOOLWAY_OWNER })'
    await folder.write({ 'a.js': plainSource('where', where, 'isolated: true,') })
    const plugins = await folder.load('a.js')
    const { pid, mark } = (await runTool(plugins.tools[0] as Tool, {})).body.value.structuredContent as {
      pid: number
      mark: string
    }
    expect([mark, seen]).toEqual(['a mark', [pid]])
    await plugins[Symbol.asyncDispose]()
    expect(seen).toEqual([pid, 'ended'])
  })

  test('S2: one that dies says so and is started again; disposing of the plugins ends it', async () => {
    await using folder = await pluginFolder({ modules })
    const dies = '{ if (word) return { pid: process.pid }; process.exit(3) }'
    await folder.write({ 'a.js': plainSource('dies', dies, 'isolated: true,') })
    const plugins = await folder.load('a.js')
    const tool = plugins.tools[0] as Tool
    expect(await refusalOf(runTool(tool, {}))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('code 3'),
    })
    const { pid } = (await runTool(tool, { word: 'x' })).body.value.structuredContent as { pid: number }
    await plugins[Symbol.asyncDispose]()
    expect(() => process.kill(pid, 0)).toThrow()
    expect((await refusalOf(runTool(tool, { word: 'x' }))).code).toBe('OUTCOME_UNKNOWN')
  })

  test('S2: an idle process is ended after a while, and started again when it is needed', async () => {
    const clock = createManualClock()
    await using folder = await pluginFolder({ clock, modules })
    await folder.write({ 'a.js': plainSource('where', '({ pid: process.pid })', 'isolated: true,') })
    await using plugins = await folder.load('a.js')
    const pid = async () =>
      ((await runTool(plugins.tools[0] as Tool, {})).body.value.structuredContent as { pid: number }).pid
    const first = await pid()
    clock.advance(599_000)
    expect(await pid()).toBe(first)
    clock.advance(600_000)
    expect(await pid()).not.toBe(first)
  })
})
