import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { View } from '../core/access.ts'
import type { Audit, AuditBegin, AuditEnd } from '../core/audit.ts'
import type { Interceptor } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import { createPipeline, type PipelineOptions } from './index.ts'

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
    begin: (event) => void records.push(event),
    end(event) {
      records.push(event)
      return undefined
    },
    ...changes,
  }
}

/** A pipeline in which everything is allowed, unless a test wants it otherwise. */
export function openPipeline(changes: Partial<PipelineOptions> = {}) {
  const clock = createManualClock()
  const audit = keptAudit()
  const pipeline = createPipeline({
    view: () => emptyView,
    audit,
    decide: () => ({ allowed: true, rule: 'everything' }),
    validate: () => undefined,
    guards: new Map(),
    limits: { limitsOf: () => [], buckets: { take: () => ({ allowed: true }) }, clock },
    needsApproval: () => undefined,
    recheck: () => undefined,
    cache: through,
    retry: through,
    breaker: through,
    bulkhead: through,
    clock,
    log: silentLog,
    ...changes,
  })
  return { ...pipeline, clock, records: audit.records, ends: () => audit.ends }
}

const through: Interceptor = (call, next) => next(call)

const nothing = async () => {
  throw new ToolwayError('TOOL_NOT_FOUND', 'There is nothing.')
}

const emptyView: View = {
  ready: async () => {},
  list: () => [],
  page: () => ({ items: Buffer.from('[{},{}]'), count: 2 }),
  resolve: nothing,
  find: nothing,
  search: () => [],
  servers: () => [],
  refusal: () => undefined,
}
