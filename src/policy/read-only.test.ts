import { expect, test } from 'vitest'
import { type Config, configSchema } from '../config/schema.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Traits } from '../core/entry.ts'
import { Policy } from './decide.ts'
import { policyWarnings } from './policy-warnings.ts'
import { createReplay } from './replay.ts'

const configOf = (written: object) => configSchema.parse(written) as Config
const everything = { allow: { servers: ['*'] } }
const config = configOf({
  mcpServers: { files: { command: 'x', readTools: ['read_*'] } },
  agents: {
    writer: everything,
    reader: { ...everything, readOnly: true },
    'reader.child': { ...everything, readOnly: false },
    'writer.reader': { readOnly: true },
  },
})
const policy = new Policy({ config })
const traits = (readOnly: boolean, carries?: true): Traits => ({
  ...{ readOnly, idempotent: readOnly, timeoutMs: 1 },
  ...(carries && { carries }),
})
const write = entryOf({ server: 'files', name: 'write_file', traits: traits(false) })
const read = entryOf({ server: 'files', name: 'read_file', traits: traits(true) })
const decide = (agent: string, entry: typeof write) => policy.decide({ ...callOf().caller, agent }, entry)

test('J2: an agent that may only read is refused writes, by a rule that names it', () => {
  expect(decide('writer', write)).toMatchObject({ allowed: true })
  expect(decide('reader', read)).toMatchObject({ allowed: true })
  expect(decide('reader', write)).toMatchObject({ code: 'WRITE_NOT_ALLOWED', rule: 'agents.reader.readOnly' })
  for (const server of ['native', 'sink']) {
    expect(decide('reader', entryOf({ server, name: 'x', traits: traits(false) }))).toMatchObject({ allowed: false })
  }
})

test('J2: it also applies to agents that inherit it, and cannot be revoked by them', () => {
  expect(decide('reader.child', write)).toMatchObject({ rule: 'agents.reader.readOnly' })
  expect(decide('writer.reader', write)).toMatchObject({ rule: 'agents.writer.reader.readOnly' })
  expect(decide('writer.reader', read)).toMatchObject({ allowed: true })
})

test('J2: tools that only run other calls stay usable: each of those calls is decided separately', () => {
  for (const name of ['execute_tool', 'execute_code']) {
    const entry = entryOf({ server: 'toolway', name, traits: traits(false, true) })
    expect(decide('reader', entry)).toMatchObject({ allowed: true })
  }
})

test('B11: why names the rule of an agent that may only read', () => {
  const { decision, rule, considered } = policy.explain('reader', write)
  expect(decision).toMatchObject({ code: 'WRITE_NOT_ALLOWED' })
  expect(rule).toBe('agents.reader.readOnly')
  expect(considered.at(-1)).toMatchObject({ step: 'read-only agent', outcome: 'denies' })
  expect(policy.explain('reader', read).decision.allowed).toBe(true)
})

test('B12: a replay shows what an agent could no longer do once it may only read', () => {
  const replay = createReplay({ policy, servers: config.mcpServers, serversProposed: true })
  const past = { time: 't', agent: 'reader', kind: 'tool', server: 'files', decision: 'ALLOW', rule: 'old' } as const
  replay.add({ ...past, tool: 'write_file', write: true })
  replay.add({ ...past, tool: 'read_file', write: false })
  replay.add({ ...past, server: 'toolway', tool: 'execute_tool', write: false })
  expect(replay.result().denied).toMatchObject([{ tool: 'write_file', after: 'agents.reader.readOnly' }])
})

test('J2: a read-only server that can show no tool is a warning that names both ways out', () => {
  const doubtsOf = (server: object) => policyWarnings(configOf({ mcpServers: { it: { command: 'x', ...server } } }))
  expect(doubtsOf({ readOnly: true })).toEqual([
    expect.stringMatching(/^mcpServers\.it\.readOnly: .*readTools.*trustAnnotations/),
  ])
  expect(doubtsOf({ readOnly: true, readTools: ['a'] })).toEqual([])
  expect(doubtsOf({ readOnly: true, trustAnnotations: true })).toEqual([])
  expect(doubtsOf({ readOnly: true, disabled: true })).toEqual([])
  const denied = new Policy({ config: configOf({ mcpServers: { files: { command: 'x', readOnly: true } } }) })
  const { reason } = denied.decide(callOf().caller, write) as { reason: string }
  expect(reason).toContain('mcpServers.files.readTools')
  expect(reason).toContain('trustAnnotations')
  const trusting = { command: 'x', readOnly: true, trustAnnotations: true }
  const trusted = new Policy({ config: configOf({ mcpServers: { files: trusting } }) })
  expect((trusted.decide(callOf().caller, write) as { reason: string }).reason).toMatch(/files\.readTools\.$/)
})

test('J2: a read-only agent learns which settings of the server would allow the call, if there are any', () => {
  const reasonOf = (server: string) =>
    (decide('reader', entryOf({ server, name: 'x', traits: traits(false) })) as { reason: string }).reason
  expect(reasonOf('files')).toMatch(/list x in mcpServers\.files\.readTools .* mcpServers\.files\.trustAnnotations\.$/)
  for (const server of ['native', 'sink']) expect(reasonOf(server)).not.toContain('mcpServers')
})
