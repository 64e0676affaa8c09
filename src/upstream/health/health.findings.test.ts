import { describe, expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import type { Descriptors } from '../../core/stores.ts'
import { readHandshakeResult } from '../connection/handshake.ts'
import { LimitExceeded } from '../transports/transport-errors.ts'
import { ServerFindings } from './health.ts'

const broken = (cause: unknown) => new ToolwayError('OUTCOME_UNKNOWN', 'The connection broke.', { cause })
const large = new LimitExceeded('large-message', 16 * 1024 * 1024)

function recorded() {
  const lines: object[] = []
  const log = { ...silentLog, warn: (facts: object) => lines.push(facts) }
  return { findings: new ServerFindings('files', log), lines }
}

const listing = (...found: NonNullable<Descriptors['findings']>) => ({
  descriptors: { findings: found } as unknown as Descriptors,
  failure: undefined,
  missing: [],
})

describe('V6: findings of a server', () => {
  test('are logged once, and again only if they change', () => {
    const { findings, lines } = recorded()
    const cut = { kind: 'too-many-entries', method: 'tools/list', message: 'cut', limit: 5, count: 1 } as const
    for (let refresh = 0; refresh < 3; refresh++) findings.listed(listing(cut))
    expect(lines).toMatchObject([{ server: 'files', kind: 'too-many-entries', method: 'tools/list', limit: 5 }])
    findings.listed(listing({ ...cut, count: 2 }))
    expect(lines).toHaveLength(2)
  })

  test('count the results that exceed a limit, and log the first', () => {
    const { findings, lines } = recorded()
    const blocks = new LimitExceeded('too-many-blocks', 20_000)
    expect([1, 2, 3].map((number) => findings.exceeded(blocks, 'tools/call', `tool_${number}`))).toEqual([1, 2, 3])
    expect(lines).toHaveLength(1)
    const found = findings.of(listing(), {})
    expect(found).toMatchObject([{ kind: 'too-many-blocks', method: 'tools/call', count: 3, limit: 20_000 }])
    expect(found[0]?.message).toContain('tool_3')
  })

  test('include once what exceeded a limit without a call', () => {
    const { findings, lines } = recorded()
    const flood = new LimitExceeded('flood', 16 * 1024 * 1024)
    expect([flood, flood, large].map((limit) => findings.exceededWithoutCall(limit))).toEqual([true, false, true])
    expect(lines).toHaveLength(2)
    const found = findings.of(listing(), {})
    expect(found).toMatchObject([{ kind: 'flood', limit: 16 * 1024 * 1024 }, { kind: 'large-message' }])
    expect(found[0]?.message).toContain('it has to wait')
    findings.exceededWithoutCall(new LimitExceeded('unusable-response', 0))
    expect(findings.of(listing(), {})[2]).toEqual({ kind: 'unusable-response', message: expect.any(String) })
  })

  test('include a message that broke a list or a connection, once', () => {
    const { findings } = recorded()
    const failed = { descriptors: undefined, failure: broken(broken(large)), missing: [] }
    expect(findings.of(failed, {})).toMatchObject([{ kind: 'large-message', limit: 16 * 1024 * 1024 }])
    expect(findings.of(failed, { lost: broken(large) })).toHaveLength(1)
    expect(findings.of(listing(), { failure: broken(large) })).toHaveLength(1)
    expect(findings.of(listing(), { failure: broken(new Error('other')) })).toEqual([])
    const missing = [{ kind: 'prompt', method: 'prompts/list', reason: 'too large', limit: large } as const]
    expect(findings.of({ ...listing(), missing }, {})).toMatchObject([
      { kind: 'large-message', method: 'prompts/list' },
    ])
  })
})

describe('V6: the result of a handshake', () => {
  const read = (body: object) => readHandshakeResult('initialize', Buffer.from(JSON.stringify(body)))
  const usual = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }

  test('stays as it is if it is small', () => {
    const { body, described } = read({ ...usual, instructions: 'Be brief.' })
    expect(body.protocolVersion).toBe('2025-11-25')
    expect(described).toEqual({ serverInfo: usual.serverInfo, capabilities: { tools: {} }, instructions: 'Be brief.' })
  })

  test('loses members that are too large, but no capability', () => {
    const extensions = { 'x/y': 'z'.repeat(100_000) }
    const capabilities = { tools: { listChanged: true }, prompts: { own: 'z'.repeat(5_000) }, extensions }
    const serverInfo = { name: 'n'.repeat(2_000), title: 't'.repeat(100_000), version: '1' }
    const { body, described } = read({ ...usual, capabilities, serverInfo, other: Array(100_000).fill({}) })
    expect(body.protocolVersion).toBe('2025-11-25')
    expect(described.capabilities).toEqual({ tools: { listChanged: true }, prompts: {}, extensions: {} })
    expect(described.serverInfo).toEqual({ name: expect.any(String), version: '1' })
    expect(described.serverInfo.name).toHaveLength(1_024)
    expect(described.findings).toMatchObject([{ kind: 'large-handshake', method: 'initialize', count: 4 }])
  })

  test('says that clients get only the beginning of long instructions', () => {
    expect(read({ ...usual, instructions: 'x'.repeat(2_000) }).described.findings).toBeUndefined()
    const { described } = read({ ...usual, instructions: 'x'.repeat(1_000_000) })
    expect(described.instructions).toHaveLength(64 * 1024)
    expect(described.findings).toMatchObject([{ kind: 'long-text', limit: 2_000 }])
  })

  test.each([
    [{ ...usual, capabilities: ['tools'] }, '"capabilities"'],
    [{ ...usual, capabilities: undefined }, '"capabilities"'],
    [{ ...usual, instructions: { a: 1 } }, '"instructions"'],
    [{ ...usual, serverInfo: 'me' }, '"serverInfo"'],
  ])('names the members of the wrong type: %j', (body, name) => {
    const { described } = read(body)
    expect(described.findings).toMatchObject([
      { kind: 'malformed-handshake', method: 'initialize', count: 1, message: expect.stringContaining(name) },
    ])
    const says = expect(described.findings?.[0]?.message)
    const isSilent = name !== '"capabilities"'
    if (isSilent) says.not.toContain('none of its tools')
    else says.toContain('none of its tools, resources and prompts are listed')
  })

  test('may lack what is optional, also as null', () => {
    const { described } = read({ ...usual, instructions: null, serverInfo: null })
    expect(described.findings).toBeUndefined()
  })
})
