import { expect, test } from 'vitest'
import type { Access, LookupOptions, View } from '../../core/access.ts'
import { callOf } from '../../core/call.fixture.ts'
import { createTestGateway } from '../access.fixture.ts'
import { echo } from '../tools.fixture.ts'
import { runNestedCall } from './nested-call.ts'

const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
const asked = { server: 'files', tool: 'read', args: {} }

test.each([
  ['execute_tool', asked],
  ['execute_tools', { calls: [asked, asked] }],
])('F16: calls that %s runs have it as their parent in the trace', async (tool, args) => {
  const gateway = createTestGateway({ servers: { files: [echo('read')] } })
  await gateway.ask(tool, args, { trace })
  const [, ...inner] = gateway.calls
  expect(inner.length).toBeGreaterThan(0)
  for (const call of inner) expect(call).toMatchObject({ parent: 'outer', trace })
})

test('F16: without tracing, a nested call has no trace context either', async () => {
  const gateway = createTestGateway({ servers: { files: [echo('read')] } })
  await gateway.ask('execute_tool', asked)
  expect(gateway.calls[1]?.trace).toBeUndefined()
})

test('F11: a failed lookup of a nested call names the outer call as its parent', async () => {
  let given: LookupOptions | undefined
  const view: Pick<View, 'find'> = {
    find(_kind, _server, _name, options) {
      given = options
      return Promise.reject(new Error('nothing'))
    },
  }
  const access = { view: () => view } as unknown as Access
  const call = callOf({ id: 'outer' })
  const carried = { caller: call.caller, timeoutMs: undefined, meta: {} }
  await runNestedCall(access, call, { ...asked, args: undefined }, carried).catch(() => {})
  expect(given).toMatchObject({ parent: 'outer' })
})
