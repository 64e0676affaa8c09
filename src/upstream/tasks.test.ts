import { expect, test } from 'vitest'
import { callOf } from '../core/call.fixture.ts'
import { Json } from '../core/json.ts'
import { createSeal } from '../core/seal.ts'
import { relayTask, startedTask } from './tasks.ts'

const seal = createSeal('a secret for the test')
const call = callOf()
const about = (taskId: unknown, principal = call.caller.principal) =>
  callOf({ caller: { ...call.caller, principal }, input: { arguments: Json.of({}), meta: {}, rest: { taskId } } })
const started = (text: string) => JSON.parse(startedTask(Buffer.from(text), call, seal).toString())

test('B2/G3: a task of either era gets an id for its caller, and the server is asked by its own', async () => {
  const modern = started('{"resultType":"task","taskId":"t1","status":"working"}').taskId
  const legacy = started('{"task":{"taskId":"t1","status":"working"}}').task.taskId
  for (const id of [modern, legacy]) {
    expect(id).not.toContain('t1')
    const answer = async (taskId: string) => {
      expect(taskId).toBe('t1')
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

test('G3: nobody else can ask about it, and nothing is sent for an id that is none', async () => {
  const { taskId } = started('{"taskId":"t1"}')
  const never = () => Promise.reject(new Error('was sent'))
  for (const request of [about(taskId, 'eve'), about('t1'), about(5), about(`${taskId}x`)]) {
    await expect(relayTask('tasks/cancel', request, seal, never)).rejects.toMatchObject({
      error: { value: { code: -32602 } },
    })
  }
})

test('B2: everything else of the result stays to the byte', () => {
  const text = '{ "big":12345678901234567890, "taskId" : "t1","content":[{"taskId":"kept"}]}'
  const bytes = startedTask(Buffer.from(text), call, seal).toString()
  expect(bytes.replace(/"taskId" : "[^"]+"/, '"taskId" : "t1"')).toBe(text)
})
