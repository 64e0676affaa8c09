import { afterEach, expect, test } from 'vitest'
import { openTestDoor } from '../http/server.fixture.ts'
import { openModernDoor } from '../mcp-stateless/stateless.fixture.ts'
import { checkProgressToken } from './operations.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

const refused = [null, true, 1.5, 2 ** 53, {}, ['a'], 'x'.repeat(257), 'é'.repeat(129)]
const taken = [0, -1, 2 ** 53 - 1, '', 'x'.repeat(256), 'é'.repeat(128)]
const methods = ['tools/call', 'prompts/get', 'resources/read', 'completion/complete', 'tools/list']

test('a progress token is text of at most 256 bytes, or a whole number', () => {
  for (const progressToken of refused) expect(() => checkProgressToken({ _meta: { progressToken } })).toThrow()
  for (const progressToken of taken) checkProgressToken({ _meta: { progressToken } })
  checkProgressToken({})
})

test.each(methods)('with sessions, %s with another token is refused with -32602, and nothing runs', async (method) => {
  const { session, access } = stack.use(await openTestDoor())
  const { ask } = await session()
  for (const progressToken of refused) {
    const { error } = await ask(method, { name: 'echo', _meta: { progressToken } })
    expect([error?.code, error?.message]).toEqual([-32602, expect.stringContaining('progressToken')])
  }
  expect(access.calls).toEqual([])
})

test.each(methods)('without sessions, %s with another token is refused with -32602', async (method) => {
  const { ask } = stack.use(await openModernDoor())
  const named = method === 'resources/read' ? { uri: 'test://a' } : { name: 'echo' }
  for (const progressToken of refused) {
    const { error } = await ask(method, named, { meta: { progressToken } })
    expect([error?.code, error?.message]).toEqual([-32602, expect.stringContaining('progressToken')])
  }
})
