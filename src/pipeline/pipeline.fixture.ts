import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { View } from '../core/access.ts'
import type { Audit, AuditBegin, AuditEnd } from '../core/audit.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { CallCheck, Caller, Handler, Interceptor } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Decide } from '../core/decision.ts'
import { ToolwayError } from '../core/errors.ts'
import { createBudgets } from '../core/limits/budget.ts'
import { silentLog } from '../core/log.ts'
import { textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { createApprovals } from './approvals.ts'
import type { ApproveOptions } from './approve.ts'

import { type AttemptStep, attemptInSteps } from './attempt.ts'
import {
  createPipeline,
  type PipelineAttempts,
  type PipelineChecks,
  type PipelinePolicy,
  type PipelineRecords,
} from './index.ts'
import type { Watch } from './observe.ts'
import { auditedView, type Recheck, recordCall, refuseBy } from './record-call.ts'
import { Refusals, recordRejections } from './refusals.ts'

/** What was written down, oldest first. */
export interface KeptAudit extends Audit {
  readonly records: readonly (AuditBegin | AuditEnd)[]
  readonly ends: readonly AuditEnd[]
}

export function keptAudit(changes: Partial<Audit> = {}): KeptAudit {
  const records: (AuditBegin | AuditEnd)[] = []
  return {
    records,
    get ends() {
      return records.filter((record) => 'decision' in record)
    },
    begin(event) {
      records.push(event)
      return undefined
    },
    end(event) {
      records.push(event)
      return undefined
    },
    ...changes,
  }
}

type PipelineChanges = Partial<PipelinePolicy & PipelineRecords & PipelineChecks & PipelineAttempts & { clock: Clock }>

/** A pipeline that allows everything by default. */
export function openPipeline(changes: PipelineChanges = {}) {
  const clock = createManualClock()
  const audit = keptAudit()
  const pipeline = createPipeline({
    policy: { view: () => emptyView, decide: () => ({ allowed: true, rule: 'everything' }), ...changes },
    records: {
      audit,
      log: silentLog,
      refusals: new Refusals({ audit: changes.audit ?? audit, clock }),
      watch: { observers: [], clock },
      ...changes,
    },
    checks: {
      validate: () => undefined,
      guards: new Map(),
      limits: { limitsOf: () => [], buckets: { take: () => ({ allowed: true }) }, clock },
      approval: approvalBy(undefined),
      recheck: unchanged,
      ...changes,
    },
    attempts: { retry: through, breaker: () => undefined, bulkhead: () => undefined, ...changes },
    clock: changes.clock ?? clock,
  })
  return { ...pipeline, clock, records: audit.records, ends: () => audit.ends }
}

/** What asks people. Every call needs approval by `rule`, if there is one, or by its own rule. */
export const approvalBy = (
  rule: string | undefined,
  {
    approvals = createApprovals({ budget: createBudgets().approvals, clock: createManualClock() }),
    by = everybody,
  } = {},
): ApproveOptions => ({
  need({ approval }) {
    const why = rule ?? approval
    return why === undefined ? undefined : { rule: why, by: [by] }
  },
  isRevoked: () => false,
  approvals,
  waitMs: 300_000,
  redact: (args) => args,
})

const everybody = ['admins', 'client']

/** The configuration does not change. */
export const unchanged: Recheck = { decide: () => undefined, unserved: () => undefined, guards: () => undefined }

const through: Interceptor = (call, next) => next(call)

const nothing = async () => {
  throw new ToolwayError('TOOL_NOT_FOUND', 'There is nothing.')
}

export const emptyView: View = {
  ready: async () => {},
  started: async () => {},
  listTtlMs: () => undefined,
  exposure: () => 'both',
  missing: () => [],
  list: () => [],
  page: () => ({ items: Buffer.from('[{},{}]'), count: 2 }),
  known: () => undefined,
  resolve: nothing,
  find: nothing,
  shown: () => [],
  search: async () => ({ tools: [], total: 0 }),
  servers: () => [],
  refusal: () => undefined,
}

/** Denies one server, and allows everything else by the rule `everything`. */
const denyForbidden: Decide = (_, { server }) =>
  server === 'forbidden'
    ? { allowed: false, code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[0]', reason: 'No.' }
    : { allowed: true, rule: 'everything' }

/** All that refuses and shares one limit of refusals: calls of anything or of what is forbidden, a view, a front end. */
export function refusing({ audit = keptAudit(), view = emptyView } = {}) {
  const decide = denyForbidden
  const clock = createManualClock()
  const refusals = new Refusals({ audit, clock })
  const refuse = refuseBy(() => emptyView, false)
  const handle = recordCall({ watch: { observers: [], clock }, audit, decide, refuse, refusals }, [], async () =>
    textResult('ran'),
  )
  const callerOf = (principal: string): Caller => ({ ...callOf().caller, principal })
  const call = (server: string, principal = 'test', args: Record<string, unknown> = {}) =>
    handle(
      callOf({
        caller: callerOf(principal),
        entry: entryOf({ server }),
        input: { arguments: Json.of(args), meta: {} },
      }),
    )
  return {
    clock,
    refusals,
    allowed: (principal?: string) => call('files', principal),
    denied: (principal?: string, args?: Record<string, unknown>) => call('forbidden', principal, args),
    view: (principal = 'test') => auditedView(view, callerOf(principal), { audit, refusals }),
    rejected: recordRejections(audit, refusals, silentLog),
    records: audit.records,
    ends: () => audit.ends,
  }
}

/** A check as an interceptor, for tests of the check alone. */
export const interceptorOf =
  (check: CallCheck): Interceptor =>
  async (call, next) => {
    await check(call)
    return next(call)
  }

/** Steps as an interceptor that makes one attempt, for tests of the steps alone. */
export const attemptOf =
  (...steps: readonly AttemptStep[]): Interceptor =>
  (call, next) =>
    attemptInSteps({}, steps, next)(call)

/** A handler whose calls are allowed, and told to observers. */
export const recordedBy = (watch: Watch, run: Handler): Handler => {
  const audit = keptAudit()
  const refusals = new Refusals({ audit, clock: watch.clock })
  const refuse = refuseBy(() => emptyView, false)
  return recordCall({ watch, audit, decide: () => ({ allowed: true, rule: 'everything' }), refuse, refusals }, [], run)
}
