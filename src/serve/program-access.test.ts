import { expect, test } from 'vitest'
import type { Access, Served } from '../core/access.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Call } from '../core/call.ts'
import { textResult } from '../core/result.ts'
import { programAccess } from './program-access.ts'

/** What a program can use of a gateway with one tool, and the calls that arrive there. */
function open() {
  const calls: Call[] = []
  const served: Served = { name: 'files__read', entry: entryOf(), definition: {} }
  const access = {
    view: () => ({ resolve: async () => served, find: async () => served }),
    handle: async (call: Call) => {
      calls.push(call)
      return textResult('ran')
    },
  } as unknown as Access
  return { calls, ...programAccess({ access, localAs: () => callOf().caller }) }
}

test('V26, V1: the arguments that are checked are those that are sent, whatever a program passes', async () => {
  const { call, calls } = open()
  const odd = {
    at: new Date(0),
    left: undefined,
    numbers: [Number.NaN, 1],
    path: { toJSON: () => '/etc/passwd' },
  }
  await call('files__read', odd)
  await call('files__read', null as unknown as Record<string, unknown>)
  const json = { at: '1970-01-01T00:00:00.000Z', numbers: [null, 1], path: '/etc/passwd' }
  expect(calls.map(({ input }) => input.arguments.value)).toEqual([json, {}])
  expect(calls.map(({ input }) => `${input.arguments.bytes}`)).toEqual([JSON.stringify(json), '{}'])
})

test('V26: arguments that are not an object, or not JSON, are refused before anything runs', async () => {
  const { call, batch, calls } = open()
  const circle: Record<string, unknown> = {}
  circle.self = circle
  for (const wrong of [[], 'text', 5, () => 1, { n: 5n }, circle] as object[]) {
    await expect(call('files__read', wrong as Record<string, unknown>)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
    })
  }
  const { results } = await batch([{ server: 'files', tool: 'read', args: circle }])
  expect(results).toMatchObject([{ ok: false, error: { code: 'INVALID_ARGUMENTS' } }])
  expect(calls).toEqual([])
})
