import { expect, test } from 'vitest'
import { configSchema } from '../../config/schema.ts'
import type { Isolation } from '../../core/executor.ts'
import { sandboxCheck } from './sandbox.ts'

const check = (found: Isolation, changes: object = {}) =>
  sandboxCheck(configSchema.parse({ sandbox: changes }).sandbox, async () => found).run(new AbortController().signal)

test('B11, S7: what can be run is told with how it is held and with what is missing', async () => {
  const all = { tier: 'bwrap', languages: ['javascript', 'typescript', 'python'], missing: [] } as const
  expect(await check(all)).toEqual({
    status: 'ok',
    message: 'code in JavaScript, TypeScript, Python runs behind bwrap, in namespaces of its own',
  })
  const some = { tier: 'process', languages: ['javascript'], missing: ['bwrap is not here: install it.'] } as const
  expect(await check(some)).toEqual({
    status: 'ok',
    message: 'code in JavaScript runs in a process of its own, without namespaces',
    details: ['bwrap is not here: install it.'],
  })
})

test('B11, S7: only who asks for more than there is has something to do', async () => {
  const nothing = { tier: undefined, languages: [], missing: ['bwrap does not work here.'] } as const
  expect(await check(nothing, { minIsolation: 'bwrap' })).toEqual({
    status: 'warning',
    message: 'no code can be run: sandbox.minIsolation asks for bwrap, which does not work here',
    details: ['bwrap does not work here.'],
  })
  expect(await check(nothing, { languages: [] })).toEqual({
    status: 'ok',
    message: 'sandbox.languages is empty: no code is run',
  })
})
