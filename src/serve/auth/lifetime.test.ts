import { expect, test } from 'vitest'
import type { Call } from '../../core/call.ts'
import { writeTaskId } from '../../core/task-id.ts'
import { createTestAccess } from '../access.fixture.ts'
import { openTestServer } from '../http/server.fixture.ts'
import { invalidCredential } from './challenge.ts'

const anna = { principal: 'anna', authenticated: true, admin: false, agents: [] }

test('B6: waiting for the result of a task ends when the credential is revoked', async () => {
  let revoked = false
  const asked = Promise.withResolvers<Call>()
  const access = {
    ...createTestAccess(),
    relay(_method: string, call: Call) {
      asked.resolve(call)
      return new Promise<never>((_, reject) => call.signal.addEventListener('abort', () => reject(call.signal.reason)))
    },
  }
  const authenticate = () => async () => {
    if (revoked) throw invalidCredential('The key has been revoked.')
    return anna
  }
  await using server = await openTestServer({ access, authenticate })
  const session = await server.session()
  const taskId = writeTaskId({ server: 'files', tool: 'wait', sealed: 'x' })
  const params = { taskId }
  const answer = session.send({ id: 1, method: 'tasks/result', params }, { headers: { accept: 'application/json' } })
  const ended = answer.then(({ body }) => body.text()).catch((error: Error) => error.message)
  const { signal } = await asked.promise
  await server.clock.pass(5_000)
  expect(signal.aborted).toBe(false)
  revoked = true
  await server.clock.pass(5_000)
  expect(await ended).toMatch(/closed|reset|hang up|terminated/)
  expect(signal.aborted).toBe(true)
})
