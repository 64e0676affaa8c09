import { describe, expect, test } from 'vitest'
import { callOf } from '../../core/call.fixture.ts'
import { ToolwayError } from '../../core/errors.ts'
import { actingAs, agentOfParams, agentOfRequest } from './identity.ts'

describe('G7: which agent a message asks for', () => {
  test('by header, else by query', () => {
    expect(agentOfRequest({ headers: { 'toolway-agent': 'a' }, url: '/mcp?agent=b' })).toBe('a')
    expect(agentOfRequest({ headers: {}, url: '/mcp?x=1&agent=b%2Ec' })).toBe('b.c')
    expect(agentOfRequest({ headers: {}, url: '/mcp?agent=a&agent=b' })).toBe('a, b')
    expect(agentOfRequest({ headers: {}, url: '/mcp' })).toBeUndefined()
  })

  test('by its own `_meta`, which must be a name', () => {
    expect(agentOfParams({ _meta: { 'dev.toolway/agent': 'a' } })).toBe('a')
    expect(agentOfParams({})).toBeUndefined()
    expect(() => agentOfParams({ _meta: { 'dev.toolway/agent': 5 } })).toThrow('dev.toolway/agent')
  })
})

test('F11: a request for an agent that is not allowed is recorded with its caller and the agent', () => {
  const turned: object[] = []
  const access = {
    agentOf: () => {
      throw new ToolwayError('INVALID_AGENT_ID', 'No.')
    },
    rejected: (who: object) => void turned.push(who),
  }
  const caller = { ...callOf().caller, principal: 'key:ci', address: '192.0.2.1' }
  expect(() => actingAs(access, caller, 'root')).toThrow('No.')
  expect(turned).toEqual([{ principal: 'key:ci', address: '192.0.2.1', code: 'INVALID_AGENT_ID', asked: 'root' }])
})

test('G7: the agent is decided again for each request', () => {
  const { caller } = callOf()
  let rules: Record<string, string> = { '': 'default', a: 'a' }
  const access = { rejected() {}, agentOf: (_: unknown, asked: string | undefined) => rules[asked ?? ''] ?? 'nobody' }
  const opened = { ...caller, agent: 'default' }
  expect(actingAs(access, opened)).toBe(opened)
  expect(actingAs(access, opened, 'a')).toMatchObject({ agent: 'a', asked: 'a' })
  rules = { '': 'restricted', a: 'restricted' }
  expect(actingAs(access, opened)).toMatchObject({ agent: 'restricted' })
  expect(actingAs(access, { ...opened, agent: 'a', asked: 'a' })).toMatchObject({ agent: 'restricted', asked: 'a' })
})
