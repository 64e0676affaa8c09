import { expect, test } from 'vitest'
import { configSchema } from '../../config/schema.ts'
import type { Isolation } from '../../core/executor.ts'
import { sandboxFinding } from './environment.ts'

const check = (found: Isolation, changes: object = {}, kernel: Readonly<Record<string, string>> = {}) =>
  sandboxFinding(
    configSchema.parse({ sandbox: changes }).sandbox,
    async () => found,
    async (name) => kernel[name],
  )

test('B11, S7: supported languages are reported with their isolation and with what is missing', async () => {
  const all = { tier: 'bwrap', languages: ['javascript', 'typescript', 'python'], missing: [] } as const
  expect(await check(all)).toEqual({
    status: 'ok',
    message: expect.stringMatching(/JavaScript, TypeScript, Python.* bwrap/),
  })
  const some = { tier: 'process', languages: ['javascript'], missing: ['bwrap is not here: install it.'] } as const
  expect(await check(some)).toEqual({
    status: 'ok',
    message: expect.stringMatching(/JavaScript .*process, without namespaces/),
    details: ['bwrap is not here: install it.'],
  })
})

test('B11, S7: only a required isolation that does not work is a warning', async () => {
  const nothing = { tier: undefined, languages: [], missing: ['bwrap does not work here.'] } as const
  expect(await check(nothing, { minIsolation: 'bwrap' })).toEqual({
    status: 'warning',
    message: 'code cannot be run: sandbox.minIsolation requires bwrap, which does not work here',
    details: ['bwrap does not work here.'],
  })
  expect(await check(nothing, { languages: [] })).toEqual({
    status: 'ok',
    message: 'sandbox.languages is empty: code execution is off',
  })
})

test('B11, S7: if the kernel prevents bwrap, the remedy is a command to copy', async () => {
  const restricted = { 'kernel.apparmor_restrict_unprivileged_userns': '1', 'user.max_user_namespaces': '63000' }
  const held = { tier: 'process', languages: ['javascript'], missing: ['bwrap does not work here for …'] } as const
  const line = expect.stringMatching(/^sudo sysctl kernel\.apparmor_restrict_unprivileged_userns=0 /)
  expect(await check(held, {}, restricted)).toMatchObject({ status: 'ok', remedy: line })
  expect(await check({ ...held, tier: undefined }, {}, restricted)).toMatchObject({ status: 'warning', remedy: line })
  expect(await check({ ...held, missing: ['bwrap is not here'] }, {}, restricted)).toMatchObject({ remedy: undefined })
})
