import { expect, test } from 'vitest'
import { callOf } from '../../core/call.fixture.ts'
import type { Caller } from '../../core/call.ts'
import { Budget } from '../../core/limits/budget.ts'
import { Json } from '../../json/json.ts'
import { createSeal } from '../../lib/seal.ts'
import { relayTask, sealStartedTask, TaskUpdates, taskLifetimeMs } from './tasks.ts'

const seal = createSeal('a secret for the test')
const call = callOf()
const about = (taskId: unknown, changes: Partial<Caller> = {}) =>
  callOf({ caller: { ...call.caller, ...changes }, input: { arguments: Json.of({}), meta: {}, rest: { taskId } } })
const started = (text: string, of = call, news = new TaskUpdates()) =>
  JSON.parse(sealStartedTask(Buffer.from(text), of, seal, news).toString())

test('B2/G3: a task of either era gets an id for its caller, and the server is asked by its own', async () => {
  // This id is so long that the random bytes of a sealed id cannot contain it by chance.
  const own = 'a-task-of-the-server'
  const modern = started(`{"resultType":"task","taskId":"${own}","status":"working"}`).taskId
  const legacy = started(`{"task":{"taskId":"${own}","status":"working"}}`).task.taskId
  for (const id of [modern, legacy]) {
    const decoded = id.split('.').map((part: string) => Buffer.from(part, 'base64url').toString('latin1'))
    for (const text of [id, ...decoded]) expect(text).not.toContain(own)
    const answer = async (taskId: string) => {
      expect(taskId).toBe(own)
      const related = { 'io.modelcontextprotocol/related-task': { taskId } }
      return Buffer.from(JSON.stringify({ taskId, status: 'completed', result: { taskId: 'kept' }, _meta: related }))
    }
    const { body } = await relayTask('tasks/get', about(id), seal, answer)
    expect(body.value).toMatchObject({
      taskId: id,
      result: { taskId: 'kept' },
      _meta: { 'io.modelcontextprotocol/related-task': { taskId: id } },
    })
  }
})

test.each([
  ['{"resultType":"task","taskId":"t","ttlMs":7200000}', 7_200_000],
  ['{"task":{"taskId":"t","ttl":60000}}', 60_000],
  ['{"task":{"taskId":"t","ttl":null}}', 86_400_000],
  ['{"taskId":"t","ttlMs":1e999}', 86_400_000],
  ['{"taskId":"t","ttlMs":-1}', 86_400_000],
  ['{"taskId":"t"}', 86_400_000],
])('B2: how long the task of %s may live', (text, expected) => {
  expect(taskLifetimeMs(Buffer.from(text))).toBe(expected)
})

test('security: an id that clients cannot send back is refused', () => {
  expect(() => started(`{"resultType":"task","taskId":"${'t'.repeat(2_049)}"}`)).toThrow(/2048 characters/)
  expect(started(`{"resultType":"task","taskId":"${'t'.repeat(2_048)}"}`).taskId.length).toBeLessThan(8_192)
})

test('G3, W1: another caller cannot ask about a task, and nothing is sent for an invalid id', async () => {
  const { taskId } = started('{"taskId":"t1"}')
  const never = () => Promise.reject(new Error('was sent'))
  for (const request of [
    about(taskId, { principal: 'eve' }),
    about(taskId, { agent: 'bob' }),
    about('t1'),
    about(5),
    about(`${taskId}x`),
  ]) {
    await expect(relayTask('tasks/cancel', request, seal, never)).rejects.toMatchObject({
      error: { value: { code: -32602 } },
    })
  }
})

test('B10, G3: a task of another process of a server is not looked for in this one, where its id may be another task', async () => {
  const theirs = JSON.parse(
    sealStartedTask(Buffer.from('{"taskId":"t1"}'), call, createSeal('shared', 'other'), new TaskUpdates()).toString(),
  ).taskId
  const sent: string[] = []
  const send = async (taskId: string) => {
    sent.push(taskId)
    return Buffer.from('{}')
  }
  const ours = createSeal('shared', 'one')
  await expect(relayTask('tasks/get', about(theirs), ours, send, 'one')).rejects.toMatchObject({
    error: { value: { code: -32602, message: expect.stringContaining('another process') } },
  })
  expect(sent).toEqual([])
  // All replicas reach the same server over HTTP.
  await relayTask('tasks/get', about(theirs), ours, send)
  expect(sent).toEqual(['t1'])
})

test('B2: everything else of the result stays to the byte', () => {
  const text = '{ "big":12345678901234567890, "taskId" : "t1","content":[{"taskId":"kept"}]}'
  const bytes = sealStartedTask(Buffer.from(text), call, seal, new TaskUpdates()).toString()
  expect(bytes.replace(/"taskId" : "[^"]+"/, '"taskId" : "t1"')).toBe(text)
})

test('B2/G3: updates of a task reach its caller, with the id that it was given, until it ends', () => {
  const heard: unknown[] = []
  const news = new TaskUpdates()
  const peer = { ...call.peer, notify: (method: string, { value }: Json) => heard.push([method, value]) }
  const [first, other] = [peer, call.peer].map((peer) => callOf({ caller: { ...call.caller, peer } }))
  const mine = started('{"task":{"taskId":"t1","status":"working"}}', first, news).task.taskId
  started('{"task":{"taskId":"t2","status":"working"}}', other, news)
  const tell = (params: object) => news.publish(Buffer.from(JSON.stringify(params)))
  tell({ taskId: 't1', status: 'input_required', statusMessage: 'Which one?' })
  tell({ taskId: 't2', status: 'working' })
  tell({ taskId: 't3', status: 'working' })
  tell({ taskId: 't1', status: 'completed' })
  tell({ taskId: 't1', status: 'completed' })
  news.publish(undefined)
  expect(heard).toEqual([
    ['notifications/tasks/status', { taskId: mine, status: 'input_required', statusMessage: 'Which one?' }],
    ['notifications/tasks/status', { taskId: mine, status: 'completed' }],
  ])
})

test('security: the number of tasks with updates is limited', () => {
  const news = new TaskUpdates()
  const heard: number[] = []
  for (let task = 0; task <= 1_000; task++) news.follow(`t${task}`, 'anna', () => heard.push(task))
  for (const task of [0, 1, 1_000]) news.publish(Buffer.from(`{"taskId":"t${task}"}`))
  expect(heard).toEqual([1, 1_000])
})

test('V6: a caller that starts too many tasks loses updates of its own oldest one, and of no other caller', () => {
  const budget = new Budget('tasks', { what: 'tasks', limit: 4, perCaller: 2 })
  const [news, elsewhere] = [new TaskUpdates(budget), new TaskUpdates(budget)]
  const heard: string[] = []
  const follow = (task: string, principal: string, on = news) => on.follow(task, principal, () => heard.push(task))
  follow('b1', 'bert')
  for (const task of ['a1', 'a2', 'a3']) follow(task, 'anna')
  // A caller at its bound, without a task at this connection, is not followed there.
  follow('a4', 'anna', elsewhere)
  for (const task of ['b1', 'a1', 'a2', 'a3']) news.publish(Buffer.from(`{"taskId":"${task}","status":"completed"}`))
  elsewhere.publish(Buffer.from('{"taskId":"a4"}'))
  expect(heard).toEqual(['b1', 'a2', 'a3'])
  expect(budget.used).toBe(0)
  follow('a5', 'anna', elsewhere)
  elsewhere[Symbol.dispose]()
  expect(budget.used).toBe(0)
})

test('G8: updates about a task stop when its caller may no longer use the tool', () => {
  const heard: string[] = []
  const news = new TaskUpdates()
  const peer = { ...call.peer, notify: (method: string) => heard.push(method) }
  let allowed = true
  const mine = callOf({ caller: { ...call.caller, peer } })
  sealStartedTask(Buffer.from('{"task":{"taskId":"t1"}}'), mine, seal, news, () => allowed)
  const working = Buffer.from('{"taskId":"t1","status":"working"}')
  news.publish(working)
  allowed = false
  news.publish(working)
  expect(heard).toEqual(['notifications/tasks/status'])
})
