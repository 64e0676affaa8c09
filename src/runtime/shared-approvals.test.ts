import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createTopicListeners, type PubSub } from '../core/cluster.ts'
import { never } from '../core/deadline.ts'
import { createBudgets } from '../core/limits/budget.ts'
import { silentLog } from '../core/log.ts'
import { createApprovals } from '../pipeline/approvals.ts'
import { SharedApprovals } from './approvals.ts'

/** Several processes that hear each other. */
function processes(count: number) {
  const clock = createManualClock()
  const topics = Array.from({ length: count }, () => createTopicListeners(silentLog))
  const all = topics.map((own) => {
    const approvals = createApprovals({ budget: createBudgets().approvals, clock })
    approvals.accept()
    const pubSub: PubSub = {
      publish: (topic, text) => {
        for (const other of topics) if (other !== own) other.deliver(topic, text)
      },
      subscribe: own.subscribe,
    }
    return { approvals, shared: new SharedApprovals({ approvals, pubSub, clock, log: silentLog }) }
  })
  return { clock, topics, all }
}

const asked = {
  ...{ call: 'c1', agent: 'dev', principal: 'key:a', session: 's1', server: 'files', tool: 'write' },
  ...{ arguments: '{}', rule: 'r', by: [['admins']] },
}

test('V8, B10: every process lists the approvals of all, and an answer reaches the one in which the call waits', async () => {
  const { all } = processes(3)
  const [first, second, third] = all
  let changes = 0
  second!.shared.onChange(() => changes++)
  const answer = first!.approvals.request(asked, 300_000, never)
  const [approval] = second!.shared.list()
  expect([approval?.tool, third!.shared.list().length, changes]).toEqual(['write', 1, 1])
  const id = approval!.id
  const given = { decision: 'session', by: 'token' } as const
  expect(await Promise.all([second!.shared.answer(id, given), third!.shared.answer(id, given)])).toEqual([true, false])
  expect(await answer).toEqual(given)
  expect(all.map(({ shared }) => shared.list())).toEqual([[], [], []])
  const scope = {
    caller: { principal: 'key:a', agent: 'dev', session: 's1' },
    entry: { server: 'files', name: 'write' },
  }
  for (const { approvals } of all) expect(approvals.grantedTo(scope, asked)).toEqual(given)
})

test('V8, B10: a process that starts later learns the pending approvals; approvals of a dead process disappear', async () => {
  const { clock, topics, all } = processes(1)
  const stop = new AbortController()
  const waiting = all[0]!.approvals.request(asked, 300_000, stop.signal)
  const own = createTopicListeners(silentLog)
  let cut = false
  const pubSub: PubSub = { publish: topics[0]!.deliver, subscribe: own.subscribe }
  const sending = topics[0]!
  using late = new SharedApprovals({
    approvals: createApprovals({ budget: createBudgets().approvals, clock }),
    pubSub,
    clock,
    log: silentLog,
  })
  expect(late.list()).toEqual([])
  // The first process now also sends to the late one.
  topics.push({ ...own, deliver: (topic, text) => (cut ? undefined : own.deliver(topic, text)) })
  sending.deliver('approvals', '{"kind":"hello"}')
  expect(late.list()).toHaveLength(1)
  await clock.pass(25_000)
  expect(late.list()).toHaveLength(1)
  cut = true
  const [approval] = late.list()
  await clock.pass(5_000)
  expect(late.list()).toEqual([])
  expect(await late.answer(approval!.id, { decision: 'once', by: 'token' })).toBe(false)
  stop.abort(new Error('over'))
  await expect(waiting).rejects.toThrow('over')
})

test('V8, B10: a process that starts later learns the approvals for sessions, which last no longer there', async () => {
  const { clock, topics, all } = processes(2)
  const [first, second] = all
  const given = { decision: 'session', by: 'token' } as const
  const answer = first!.approvals.request(asked, 300_000, never)
  await second!.shared.answer(first!.approvals.list()[0]!.id, given)
  await answer
  await clock.pass(23 * 3_600_000)
  const own = createTopicListeners(silentLog)
  const publish: PubSub['publish'] = (topic, text) => {
    for (const { deliver } of topics.slice(0, 2)) deliver(topic, text)
  }
  const late = createApprovals({ budget: createBudgets().approvals, clock })
  // A reload here must not be undone by a reply to another process.
  first!.approvals.forgetGrants()
  topics.push(own)
  using _shared = new SharedApprovals({
    approvals: late,
    pubSub: { publish, subscribe: own.subscribe },
    clock,
    log: silentLog,
  })
  const caller = { principal: 'key:a', agent: 'dev', session: 's1' }
  const granted = ({ grantedTo }: typeof late) =>
    grantedTo({ caller, entry: { server: 'files', name: 'write' } }, asked)
  expect([first!.approvals, second!.approvals, late].map(granted)).toEqual([undefined, given, given])
  await clock.pass(3_600_000)
  expect(granted(late)).toBeUndefined()
})

test('V8: a process whose clock differs has its approvals listed; if it does not reply, that is reported', async () => {
  const clock = createManualClock()
  const own = createTopicListeners(silentLog)
  const pubSub: PubSub = { publish() {}, subscribe: own.subscribe }
  const approvals = createApprovals({ budget: createBudgets().approvals, clock })
  using shared = new SharedApprovals({ approvals, pubSub, clock, log: silentLog })
  // By the clock of the other machine.
  const approval = { ...asked, id: 'a1', askedAt: clock.now() - 600_000, until: clock.now() - 300_000 }
  own.deliver('approvals', JSON.stringify({ kind: 'asked', approval }))
  expect(shared.list()).toHaveLength(1)
  const refused = expect(shared.answer('a1', { decision: 'once', by: 'token' })).rejects.toMatchObject({
    code: 'SERVER_UNAVAILABLE',
  })
  await clock.pass(5_000)
  await refused
})
