import { afterEach, expect, test } from 'vitest'
import { notifyWaiting } from '../../core/waiting.ts'
import { Json } from '../../json/json.ts'
import { openTestServer } from '../http/server.fixture.ts'
import { openStatelessServer } from '../mcp-stateless/stateless.fixture.ts'
import { CallProgress, checkProgressToken } from './operations.ts'

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
  const { session, access } = stack.use(await openTestServer())
  const { ask } = await session()
  for (const progressToken of refused) {
    const { error } = await ask(method, { name: 'echo', _meta: { progressToken } })
    expect([error?.code, error?.message]).toEqual([-32602, expect.stringContaining('progressToken')])
  }
  expect(access.calls).toEqual([])
})

test.each(methods)('without sessions, %s with another token is refused with -32602', async (method) => {
  const { ask } = stack.use(await openStatelessServer())
  const named = method === 'resources/read' ? { uri: 'test://a' } : { name: 'echo' }
  for (const progressToken of refused) {
    const { error } = await ask(method, named, { meta: { progressToken } })
    expect([error?.code, error?.message]).toEqual([-32602, expect.stringContaining('progressToken')])
  }
})

/** The values that a caller gets, if seconds of waiting (`['wait', 2]`) and values of the server come in this order. */
function heard(...sent: readonly (number | readonly ['wait', number])[]): readonly number[] {
  const progress = new CallProgress()
  const got: number[] = []
  const notify = (_: string, params: Json) => {
    got.push((progress.next('theirs', params).value as { progress: number }).progress)
  }
  for (const one of sent) {
    if (typeof one === 'number') notify('', Json.of({ progressToken: 'upstream', progress: one }))
    else notifyWaiting({ progressToken: 'theirs' }, { notify }, one[1] * 1000, ['s'])
  }
  return got
}

test.each([
  ['a wait and the first value of a tool', [['wait', 1], ['wait', 2], 0, 0, 1]],
  ['two waits', [['wait', 1], ['wait', 2], ['wait', 1], 0.5]],
  ['a wait after the progress of the tool', [0, 5e9, ['wait', 1], 0, 6e9]],
] as const)('V4: progress increases over %s', (_, sent) => {
  const values = heard(...sent)
  expect(values).toHaveLength(sent.length)
  for (const [index, value] of values.slice(1).entries()) expect(value).toBeGreaterThan(values[index] as number)
  expect(values.at(-1)).toBe(sent.at(-1))
})

test('V4: the progress of a server that Toolway did not wait for stays as it is', () => {
  expect(heard(0, 3, 3, 1, -1)).toEqual([0, 3, 3, 1, -1])
})
