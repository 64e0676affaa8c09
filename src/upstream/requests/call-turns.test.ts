import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { callOf } from '../../core/call.fixture.ts'
import type { Peer } from '../../core/call.ts'
import { Json } from '../../json/json.ts'
import { CallTurns, type ToolMessaging } from './call-turns.ts'

const never = new AbortController().signal
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
const peerOf = (name: string, log: string[]): Peer => ({
  ...callOf().peer,
  rounds: true,
  notify: () => log.push(name),
  async ask() {
    await nextTurn()
    return Json.of({ from: name })
  },
})

function started(caughtUp = async () => {}) {
  const clock = createManualClock()
  const habits = new Map<string, ToolMessaging>()
  const turns = new CallTurns(clock, habits, { strict: true, caughtUp })
  const sent: string[] = []
  const log: string[] = []
  const ends = new Map<string, () => void>()
  const run = (name: string, call: string, signal = never) =>
    turns.run(name, peerOf(call, log), signal, () => {
      sent.push(call)
      return new Promise<void>((resolve) => ends.set(call, resolve))
    })
  const end = (call: string) => {
    ends.get(call)?.()
    return nextTurn()
  }
  return { clock, habits, turns, sent, log, run, end }
}

test('V3: calls of a tool that answered without sending messages run in parallel', async () => {
  const { sent, run, end, habits } = started()
  for (const call of ['a', 'b', 'c']) void run('write', call)
  await nextTurn()
  expect(sent).toEqual(['a'])
  await end('a')
  expect(sent).toEqual(['a', 'b', 'c'])
  expect(habits.get('write')).toBe('quiet')
})

test('V3: a silent call delays the others for a moment only', async () => {
  const { clock, sent, run } = started()
  for (const call of ['a', 'b']) void run('slow', call)
  await clock.pass(249)
  expect(sent).toEqual(['a'])
  await clock.pass(1)
  expect(sent).toEqual(['a', 'b'])
})

test('G3: a server that has not read a call yet is late and not silent', async () => {
  const read = Promise.withResolvers<void>()
  const { clock, turns, sent, log, run } = started(() => read.promise)
  for (const call of ['a', 'b']) void run('slow', call)
  await clock.pass(10_000)
  expect(sent).toEqual(['a'])
  turns.speaker()?.notify('notifications/message', Json.of({}))
  expect(log).toEqual(['a'])
  read.resolve()
  await clock.pass(249)
  expect(sent).toEqual(['a'])
  await clock.pass(1)
  expect(sent).toEqual(['a', 'b'])
})

test('G3: a call that comes after a silence is not sent before the server has read the first', async () => {
  const read = Promise.withResolvers<void>()
  const { clock, turns, sent, log, run } = started(() => read.promise)
  void run('slow', 'a')
  await clock.pass(1_000)
  void run('slow', 'b')
  await nextTurn()
  expect(sent).toEqual(['a'])
  turns.speaker()?.notify('notifications/message', Json.of({}))
  expect(log).toEqual(['a'])
  read.resolve()
  await clock.pass(250)
  expect(sent).toEqual(['a', 'b'])
})

test('G3: a call that keeps sending messages keeps its turn', async () => {
  const { clock, turns, sent, log, run } = started()
  for (const call of ['a', 'b']) void run('talk', call)
  for (let count = 0; count < 5; count++) {
    await clock.pass(200)
    turns.speaker()?.notify('notifications/message', Json.of({}))
  }
  expect(sent).toEqual(['a'])
  expect(log).toEqual(['a', 'a', 'a', 'a', 'a'])
  await clock.pass(250)
  expect(sent).toEqual(['a', 'b'])
})

test('G3: messages while one call runs and the others wait for answers belong to the one that runs', async () => {
  const { turns, sent, log, run } = started()
  for (const call of ['a', 'b']) void run('talk', call)
  await nextTurn()
  const answer = turns.speakers()[0]?.ask('elicitation/create', Json.of({}), never)
  await nextTurn()
  expect(sent).toEqual(['a', 'b'])
  turns.speaker()?.notify('notifications/message', Json.of({}))
  expect(log).toEqual(['b'])
  expect(await Promise.race([answer, nextTurn().then(() => 'held back')])).toBe('held back')
})

test('G3: a tool that was quiet and asks takes turns from then on', async () => {
  const { turns, sent, run, end, habits } = started()
  habits.set('write', 'quiet')
  for (const call of ['a', 'b']) void run('write', call)
  await nextTurn()
  expect(turns.speaker()).toBeUndefined()
  expect(turns.speakers()).toHaveLength(2)
  await turns.speakers()[0]?.ask('elicitation/create', Json.of({}), never)
  expect(habits.get('write')).toBe('speaks')
  void run('write', 'c')
  await nextTurn()
  expect(sent).toEqual(['a', 'b'])
  await end('b')
  expect(sent).toEqual(['a', 'b', 'c'])
})

test('V3: a call that is cancelled while it waits or runs lets the next one run at once', async () => {
  const { sent, run } = started()
  const [first, second] = [new AbortController(), new AbortController()]
  void run('slow', 'a', first.signal).catch(() => {})
  const cancelled = run('slow', 'b', second.signal)
  void run('slow', 'c')
  second.abort(new Error('enough'))
  await expect(cancelled).rejects.toThrow('enough')
  first.abort(new Error('enough'))
  await nextTurn()
  expect(sent).toEqual(['a', 'c'])
})

test('B7: closing the connection ends all waiting', async () => {
  const { clock, turns, sent, run } = started()
  for (const call of ['a', 'b']) void run('slow', call)
  turns.close()
  await nextTurn()
  expect(sent).toEqual(['a', 'b'])
  expect(clock.pending).toBe(0)
})

test('V3: calls of one session wait for one another only if their tool is known to ask', async () => {
  const sent: string[] = []
  const turns = new CallTurns(createManualClock(), new Map(), { strict: false, caughtUp: async () => {} })
  const run = (call: string) =>
    turns.run('write', peerOf(call, []), never, () => {
      sent.push(call)
      return new Promise<void>(() => {})
    })
  for (const call of ['a', 'b']) void run(call)
  await nextTurn()
  expect(sent).toEqual(['a', 'b'])
  void turns.speakers()[0]?.ask('elicitation/create', Json.of({}), never)
  for (const call of ['c', 'd']) void run(call)
  await nextTurn()
  expect(sent).toEqual(['a', 'b', 'c'])
})

test('G3: all answers to questions that a call asked at once reach it, before calls that have not begun', async () => {
  const { turns, sent, run, end } = started()
  for (const call of ['a', 'b', 'c']) void run('talk', call)
  await nextTurn()
  const [asking] = turns.speakers()
  const answers = ['q1', 'q2'].map((method) => asking?.ask(method, Json.of({}), never))
  await nextTurn()
  await nextTurn()
  expect(sent).toEqual(['a', 'b'])
  await end('b')
  expect(await Promise.all(answers)).toHaveLength(2)
  expect(sent).toEqual(['a', 'b'])
})
