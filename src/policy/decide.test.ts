import { expect, test } from 'vitest'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { createPolicy } from './decide.ts'

const open = { allowedServers: ['*'], allowedTools: [], blockedTools: [], requireAuth: [], pins: 'warn' as const }
const { caller } = callOf()
const tool = (server: string, name: string) => entryOf({ server, name })

test('F7: with nothing configured everything is allowed', () => {
  expect(createPolicy(open)(caller, tool('files', 'read'))).toMatchObject({ allowed: true })
})

test('F7: a blocked tool is refused by the rule that blocks it, also where it is allowed elsewhere', () => {
  const decide = createPolicy({ ...open, allowedTools: ['*'], blockedTools: ['a.b', 'files.*'] })
  expect(decide(caller, tool('files', 'read'))).toMatchObject({ code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[1]' })
  expect(decide(caller, tool('other', 'read'))).toMatchObject({ allowed: true })
})

test('F7: only the allowed servers may be used; meta-tools need not be listed but can be blocked', () => {
  const decide = createPolicy({ ...open, allowedServers: ['files'], blockedTools: ['toolway.execute_tools'] })
  expect(decide(caller, tool('files', 'read'))).toMatchObject({ allowed: true })
  expect(decide(caller, tool('native', 'hash'))).toMatchObject({ code: 'NAMESPACE_NOT_ALLOWED' })
  expect(decide(caller, tool('toolway', 'list_servers'))).toMatchObject({ allowed: true })
  expect(decide(caller, tool('toolway', 'execute_tools'))).toMatchObject({ code: 'TOOL_BLOCKED' })
})

test('F7: a list of allowed tools excludes every other tool, not resources and prompts', () => {
  const decide = createPolicy({ ...open, allowedTools: ['files.read*'] })
  expect(decide(caller, tool('files', 'read_text'))).toMatchObject({ allowed: true })
  expect(decide(caller, tool('files', 'write'))).toMatchObject({
    code: 'DENIED_BY_POLICY',
    rule: 'policy.allowedTools',
  })
  expect(decide(caller, entryOf({ kind: 'prompt', name: 'hello' }))).toMatchObject({ allowed: true })
})

test('F7: some tools need an authenticated caller', () => {
  const decide = createPolicy({ ...open, requireAuth: ['db.*'] })
  expect(decide(caller, tool('db', 'query'))).toMatchObject({ allowed: true })
  expect(decide({ ...caller, authenticated: false }, tool('db', 'query'))).toMatchObject({
    code: 'AUTH_REQUIRED',
    rule: 'policy.requireAuth[0]',
  })
})
