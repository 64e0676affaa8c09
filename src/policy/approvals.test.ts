import { expect, test } from 'vitest'
import { type Config, configSchema } from '../config/schema.ts'
import { entryOf } from '../core/call.fixture.ts'
import { createApprovalRules, mayAnswer } from './approvals.ts'

const rulesOf = (written: object) => createApprovalRules(configSchema.parse(written) as Config)

test('V8: servers and agents list tools that need approval; children inherit and all lists of approvers apply', () => {
  const { need, ofServer } = rulesOf({
    approvals: { by: ['admins'] },
    mcpServers: { files: { command: 'x', approve: ['rm', 'write*'], approvers: ['key:boss'] } },
    agents: {
      team: { approve: ['mail.*', 'writes'] },
      'team.junior': { approve: ['files.read'], approvers: ['alice'] },
      other: {},
    },
  })
  const tool = (server: string, name: string, readOnly = true) =>
    entryOf({ server, name, traits: { readOnly, idempotent: false, timeoutMs: 1 } })
  expect(need(tool('files', 'write_all'), 'other')).toEqual({
    rule: 'mcpServers.files.approve[1]',
    by: [['key:boss']],
  })
  expect(need(tool('files', 'rm', false), 'team.junior')).toEqual({
    rule: 'mcpServers.files.approve[0]',
    by: [['key:boss'], ['admins']],
  })
  expect(need(tool('files', 'read'), 'team.junior')).toEqual({ rule: 'agents.team.junior.approve[0]', by: [['alice']] })
  expect(need(tool('mail', 'send'), 'team.junior')?.rule).toBe('agents.team.approve[0]')
  expect(need(tool('web', 'post', false), 'team')?.rule).toBe('agents.team.approve[1]')
  expect(need(tool('web', 'get'), 'team')).toBeUndefined()
  expect(need(tool('web', 'get'), 'team', 'chat.approve[0]')).toEqual({ rule: 'chat.approve[0]', by: [['admins']] })
  expect(need({ ...tool('files', 'x'), aliases: ['rm'] }, 'other')?.rule).toBe('mcpServers.files.approve[0]')
  expect(ofServer(tool('files', 'read'))).toBeUndefined()
})

test('V8: meta-tools need approval only if they are named', () => {
  const { need } = rulesOf({ agents: { a: { approve: ['*'] }, b: { approve: ['toolway.execute_code'] } } })
  const code = entryOf({
    server: 'toolway',
    name: 'execute_code',
    traits: { readOnly: false, idempotent: false, timeoutMs: 1, carries: true },
  })
  expect(need(code, 'a')).toBeUndefined()
  expect(need(code, 'b')?.rule).toBe('agents.b.approve[0]')
})

test.each([
  // by, principal of the call, person, whether they may answer
  ['admins', 'key:agent', { principal: 'token', admin: true }, true],
  ['admins', 'key:agent', { principal: 'key:other', admin: false }, false],
  ['admins', 'key:agent', { principal: 'key:agent', admin: true }, false],
  ['admins', 'token', { principal: 'token', admin: true }, true],
  ['own', 'key:agent', { principal: 'key:agent', admin: false }, true],
  ['own', 'key:agent', { principal: 'token', admin: true }, false],
  ['alice', 'key:agent', { principal: 'key:alice', admin: false }, true],
  ['key:alice', 'key:alice', { principal: 'key:alice', admin: false }, false],
  ['jwt:id.example.com:bob', 'token', { principal: 'jwt:id.example.com:bob', admin: false }, true],
  ['client', 'key:agent', { principal: 'key:client', admin: true }, false],
])('V8: by %s, a call of %s and %j: %s', (word, principal, person, expected) => {
  expect(mayAnswer({ by: [[word]], principal }, person)).toBe(expected)
  expect(mayAnswer({ by: [[word], ['nobody']], principal }, person)).toBe(false)
})
