import { describe, expect, test } from 'vitest'
import type { AuditRecord } from '../src/audit/record.ts'
import { type Evidence, factsOf, type Outcome, type SentCall, violations } from './fixtures/chaos/model.ts'
import { chosenSeed, faultKinds, planFaults } from './fixtures/chaos/schedule.ts'

const lengthMs = 20_000
const seeds = Array.from({ length: 100 }, (_, seed) => seed)

describe('B7: the schedule of a chaos run', () => {
  test('is the same for the same seed, and another one for another seed', () => {
    const plans = seeds.map((seed) => JSON.stringify(planFaults(seed, { lengthMs })))
    expect(seeds.map((seed) => JSON.stringify(planFaults(seed, { lengthMs })))).toEqual(plans)
    expect(new Set(plans).size).toBe(seeds.length)
  })

  test('has every kind of fault, in order, none after the end, and those of one kind one after another', () => {
    for (const seed of seeds) {
      const plan = planFaults(seed, { lengthMs })
      expect(new Set(plan.map(({ kind }) => kind)).size, `seed ${seed}`).toBeGreaterThanOrEqual(faultKinds.length - 1)
      expect(plan.map(({ atMs }) => atMs)).toEqual(plan.map(({ atMs }) => atMs).sort((a, b) => a - b))
      for (const { kind, atMs, forMs } of plan) {
        expect(atMs + forMs).toBeLessThanOrEqual(lengthMs)
        const next = plan.find((other) => other.kind === kind && other.atMs > atMs)
        if (next) expect(next.atMs).toBeGreaterThanOrEqual(atMs + forMs)
      }
    }
  })

  test('has faults of different kinds at the same time', () => {
    const overlaps = (seed: number) => {
      const plan = planFaults(seed, { lengthMs })
      return plan.some(({ atMs, forMs }, at) => plan.slice(at + 1).some((next) => next.atMs < atMs + forMs))
    }
    expect(seeds.filter(overlaps)).toEqual(seeds)
  })

  test('leaves out what cannot be done here', () => {
    const kinds = faultKinds.filter((kind) => kind !== 'fill disk')
    const planned = seeds.flatMap((seed) => planFaults(seed, { lengthMs, kinds })).map(({ kind }) => kind)
    expect([...new Set(planned)].sort()).toEqual([...kinds].sort())
  })

  test('comes from CHAOS_SEED, which must be a number', () => {
    expect(chosenSeed(7, { CHAOS_SEED: '42' })).toBe(42)
    expect(() => chosenSeed(7, { CHAOS_SEED: 'many' })).toThrow(/CHAOS_SEED/)
    expect(chosenSeed(7, {})).toBe(7)
  })
})

/** One write that is answered and recorded, with what a test changes about it. */
interface Told {
  readonly outcome?: Outcome
  readonly write?: boolean
  readonly executions?: number
  readonly begun?: number
  readonly ended?: number
  readonly code?: string
  readonly archived?: number
  readonly faults?: Evidence['faults']
  readonly readyMs?: number
}

const id = 'w-modern-0-1'
const refused = (code: string, retryable = false): Outcome => ({ is: 'refused', code, retryable })
const killed = { kind: 'kill server', begunMs: 50, endedMs: 50 } as const
const workerKilled = { kind: 'kill worker', begunMs: 50, endedMs: 50 } as const
const full = { kind: 'fill disk', begunMs: 50, endedMs: 80 } as const

function evidence({ outcome = { is: 'answered' }, write = true, executions = 1, ...told }: Told): Evidence {
  const { begun = 1, ended = 1, code, archived = 1, faults = [], readyMs = 0 } = told
  const call: SentCall = { id, write, begunMs: 10, endedMs: 100, outcome }
  const record = { call: 'c', tool: 'write_thing', operation: 'call_tool' }
  const before = { ...record, phase: 'before', arguments: { id } } as unknown as AuditRecord
  const end = { decision: code ? 'ERROR' : 'ALLOW', code, is_error: code !== undefined }
  const after = { ...record, ...end, phase: 'after' } as unknown as AuditRecord
  const records = [...Array(begun).fill(before), ...Array(ended).fill(after)]
  const audit = factsOf(records)
  const archive = factsOf(Array(archived).fill(records).flat())
  const times = new Map(executions > 0 ? [[id, executions]] : [])
  return { calls: [call], faults, readyMs, executions: times, audit, archive }
}

describe('B7, F11, F12: the model of a chaos run', () => {
  test.each<[string, Told]>([
    ['a write that is answered and recorded', {}],
    ['a write with an unknown outcome that has run', killedWith(1)],
    ['a write with an unknown outcome that has not run', killedWith(0)],
    ['a write that was refused', { ...sentNothing('SERVER_UNAVAILABLE'), faults: [killed] }],
    ['a write to a server that was starting', { ...sentNothing('SERVER_UNAVAILABLE'), begun: 0, readyMs: 20 }],
    ['a write to a server that was starting again', { ...sentNothing('SERVER_UNAVAILABLE'), readyMs: 20 }],
    ['a write that timed out', { outcome: refused('TIMEOUT'), code: 'TIMEOUT' }],
    [
      'a write that is lost with its worker',
      { outcome: { is: 'lost', why: 'reset' }, ended: 0, faults: [workerKilled] },
    ],
    ['a write that could not be recorded', { ...unrecorded(true), faults: [full] }],
    ['a write whose end could not be recorded', { outcome: refused('AUDIT_UNAVAILABLE'), ended: 0, faults: [full] }],
    ['a read that was retried', { write: false, executions: 3 }],
  ])('accepts %s', (_, told) => expect(violations(evidence(told))).toEqual([]))

  test.each<[string, Told, RegExp]>([
    ['a write that ran twice', { executions: 2 }, /ran 2 times/],
    ['a read that ran more often than it may be retried', { write: false, executions: 4 }, /ran 4 times/],
    ['an answer without an execution', { executions: 0 }, /never ran/],
    ['a refused write that ran', { ...sentNothing('SERVER_UNAVAILABLE'), executions: 1, faults: [killed] }, /not sent/],
    ['an unrecorded write that ran', { ...unrecorded(true), executions: 1, faults: [full] }, /not sent/],
    ['an acknowledged write without an end', { ended: 0 }, /acknowledged/],
    ['an acknowledged write without a record', { begun: 0, ended: 0 }, /acknowledged/],
    ['a beginning that is recorded twice', { begun: 2 }, /beginning is 2 times/],
    ['an end that is recorded twice', { ended: 2 }, /end is 2 times/],
    ['another outcome in the log', { code: 'TIMEOUT' }, /the audit log says ERROR TIMEOUT/],
    ['a code that no fault explains', { ...sentNothing('SERVER_UNAVAILABLE') }, /no fault explains/],
    [
      'a write to a server that was starting, without a record',
      { ...sentNothing('SERVER_UNAVAILABLE'), begun: 0, ended: 0, readyMs: 20 },
      /1 calls found a server starting, and 0 of them/,
    ],
    [
      'a lost session while servers were starting',
      { outcome: { is: 'session ended' }, readyMs: 20 },
      /no fault explains/,
    ],
    [
      'a write that ran although its server was starting',
      { ...sentNothing('SERVER_UNAVAILABLE'), executions: 1, readyMs: 20 },
      /not sent/,
    ],
    ['an outage of the log without a full disk', { ...unrecorded(true), faults: [killed] }, /no fault explains/],
    ['an internal error', { ...sentNothing('INTERNAL'), faults: [killed] }, /no fault explains/],
    ['a lost call without a killed worker', { outcome: { is: 'lost', why: 'reset' }, faults: [killed] }, /no fault/],
    [
      'a call without a response',
      { outcome: { is: 'unanswered' }, faults: [killed, workerKilled] },
      /no fault explains/,
    ],
    ['records that PostgreSQL lacks', { archived: 0 }, /PostgreSQL has 0 and 0/],
    ['records that PostgreSQL has twice', { archived: 2 }, /PostgreSQL has 2 and 2/],
  ])('reports %s', (_, told, problem) => {
    expect(violations(evidence(told))).toContainEqual(expect.stringMatching(problem))
  })

  test('reports executions and records of calls that were never sent', () => {
    expect(violations({ ...evidence({}), calls: [] })).toEqual([`${id} was never sent`])
  })
})

function killedWith(executions: number): Told {
  return { outcome: refused('OUTCOME_UNKNOWN'), code: 'OUTCOME_UNKNOWN', executions, faults: [killed] }
}

function sentNothing(code: string): Told {
  return { outcome: refused(code, true), code, executions: 0 }
}

function unrecorded(retryable: boolean): Told {
  return { outcome: refused('AUDIT_UNAVAILABLE', retryable), executions: 0, begun: 0, ended: 0 }
}
