import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import { messageKinds } from './guest/protocol.ts'
import { ChildRun } from './run-in-child.ts'
import { type ChildListener, RunStopped, type SandboxChild, sandboxLimits, taskLimits } from './runtime.ts'

const task = { code: '1', language: 'javascript', prelude: '', keep: false, ...taskLimits(sandboxLimits) }

/** A child that has fallen into the program's hands: it says what the test says. */
function captured(used: () => number | undefined = () => 0, keep = false) {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const sent: { readonly kind: number; readonly id: number; readonly text: string }[] = []
  let receiver: ChildListener | undefined
  let killed = false
  const child: SandboxChild = {
    ready: Promise.resolve(),
    ended,
    listen: (given) => {
      receiver = given
    },
    async send(kind, id, payload) {
      sent.push({ kind, id, text: String(payload) })
    },
    cpuMs: used,
    freeze: () => true,
    thaw() {},
    kill() {
      killed = true
      resolve()
      return ended
    },
  }
  const clock = createManualClock()
  const stop = new AbortController()
  const asked: AbortSignal[] = []
  const said = new ChildRun({
    child,
    task: { ...task, keep },
    memory: undefined,
    host: (name, input, signal) => {
      asked.push(signal)
      return name === 'echo' ? Promise.resolve(input) : new Promise(() => {})
    },
    signal: stop.signal,
    limits: sandboxLimits,
    clock,
    log: createKeptLog(),
  })
  const say = (kind: number, payload: string | Buffer = '', id = 0) =>
    receiver?.frame({ kind, id, payload: Buffer.from(payload) })
  return {
    said,
    say,
    sent,
    clock,
    stop,
    asked,
    broken: (why: string) => receiver?.broken(why),
    get killed() {
      return killed
    },
  }
}

const ok = JSON.stringify({ status: 'ok', truncated: [] })

describe('an untrusted child', () => {
  test('S7: a well-behaved child runs to its end, and no timer remains', async () => {
    const child = captured()
    child.say(messageKinds.log, 'hello')
    child.say(messageKinds.value, '{"a":1}')
    child.say(messageKinds.done, ok)
    expect(await child.said.ending).toEqual({ status: 'ok', value: '{"a":1}', logs: 'hello', truncated: [] })
    expect(child.clock.pending).toBe(0)
    expect(child.killed).toBe(false)
  })

  test.each([
    ['a verdict that is none', messageKinds.done, '{"status":"great","truncated":[]}'],
    ['a verdict with more in it', messageKinds.done, '{"status":"ok","truncated":[],"isolation":"none"}'],
    [
      'a verdict with a long message',
      messageKinds.done,
      JSON.stringify({ status: 'error', truncated: [], error: { name: 'x', message: 'x'.repeat(9000) } }),
    ],
    ['a verdict that is deep', messageKinds.done, '['.repeat(60_000)],
    ['a result that is no JSON', messageKinds.value, '{'],
    ['an unrequested environment state', messageKinds.memory, 'x'],
    ['to be ready again', messageKinds.ready, ''],
    ['an order', messageKinds.run, '{}'],
    ['a call without a name', messageKinds.call, '\n{}'],
    ['a call with a long name', messageKinds.call, `${'n'.repeat(300)}\n{}`],
    ['a call without a line feed', messageKinds.call, 'echo'],
  ])('S7: %s is its end', async (_, kind, payload) => {
    const child = captured()
    child.say(kind, payload)
    expect(await child.said.ending).toMatchObject({ status: 'error', error: { name: 'SandboxError' } })
    expect(await child.said.memory).toBeUndefined()
    expect(child.killed).toBe(true)
    expect(child.clock.pending).toBe(0)
  })

  test.each([
    ['messages', 30_000, (say: ReturnType<typeof captured>['say']) => say(messageKinds.log, '')],
    ['results', 2, (say: ReturnType<typeof captured>['say']) => say(messageKinds.value, '1')],
    ['log', 2, (say: ReturnType<typeof captured>['say']) => say(messageKinds.log, 'x'.repeat(65_000))],
    ['calls', 300, (say: ReturnType<typeof captured>['say'], n: number) => say(messageKinds.call, 'wait\n', n)],
    ['calls with one number', 2, (say: ReturnType<typeof captured>['say']) => say(messageKinds.call, 'wait\n', 1)],
  ])('S7: too many %s are its end', async (_, count, flood) => {
    const child = captured()
    for (let n = 0; n < count; n++) flood(child.say, n)
    expect(await child.said.ending).toMatchObject({ error: { message: expect.stringContaining('tampered') } })
    expect(child.killed).toBe(true)
  })

  test('S7: messages after the result are ignored, and calls are no longer answered', async () => {
    const child = captured()
    child.say(messageKinds.call, 'wait\n', 1)
    child.say(messageKinds.done, ok)
    child.say(messageKinds.log, 'late')
    child.say(messageKinds.value, '"late"')
    child.say(messageKinds.call, 'echo\n1', 2)
    expect(await child.said.ending).toEqual({ status: 'ok', logs: '', truncated: [] })
    expect(child.asked.map(({ aborted }) => aborted)).toEqual([true])
  })

  test('S7: the environment state is accepted once, after the result', async () => {
    const child = captured(undefined, true)
    child.say(messageKinds.done, ok)
    child.say(messageKinds.memory, 'all')
    expect(String(await child.said.memory)).toBe('all')
    expect(child.killed).toBe(false)
    child.say(messageKinds.memory, 'and more')
    expect(child.killed).toBe(true)
    const early = captured(undefined, true)
    early.say(messageKinds.memory, 'all')
    expect(await early.said.ending).toMatchObject({ error: { message: expect.stringContaining('tampered') } })
  })

  test('S7: a child that does not stop is killed by the CPU time of the kernel', async () => {
    let used = 100
    const child = captured(() => used)
    await child.clock.pass(1000)
    used += 5000 * 1.1 + 101
    await child.clock.pass(100)
    expect(await child.said.ending).toMatchObject({ status: 'timeout' })
    expect(child.killed).toBe(true)
  })

  test('F10: a deadline or a cancellation ends it, calls included', async () => {
    const child = captured()
    child.say(messageKinds.call, 'wait\n', 1)
    child.stop.abort(new RunStopped('timeout', 'Too late.'))
    expect(await child.said.ending).toMatchObject({
      status: 'timeout',
      error: { name: 'TimeoutError', message: 'Too late.' },
    })
    expect(child.asked[0]?.aborted).toBe(true)
    const other = captured()
    other.stop.abort()
    expect(await other.said.ending).toMatchObject({ status: 'cancelled' })
  })
})
