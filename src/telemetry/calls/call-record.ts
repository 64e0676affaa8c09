import type { Operation } from '../../core/audit.ts'
import type { Call } from '../../core/call.ts'
import type { CallOutcome, Observed } from '../../core/observer.ts'
import type { Trail } from '../../core/trail.ts'

/** Never holds arguments or results. */
export interface CallRecord {
  readonly id: string
  readonly parent: string | undefined
  readonly agent: string
  readonly principal: string
  readonly operation: Operation
  readonly server: string
  readonly name: string
  at: number
  /** By the clock of the trail's steps. */
  start: number
  trail: Trail | undefined
  ms: number | undefined
  outcome: CallOutcome['kind'] | undefined
  /** May be a server's own code. */
  code: string | undefined
  /** A subscriber has seen the call running and must see its end. */
  shown: boolean
  waiting: boolean
  /** Approximate memory size, set when the call ends. */
  bytes: number
}

const maxName = 300

export interface CallRecorder {
  begin(call: Call, operation: Operation, at: number, start: number): CallRecord
  end(kept: CallRecord, observed: Observed): void
}

/** Names are redacted when shown; long ones before truncating, so that a secret is never cut in half. */
export function createCallRecorder(redact: (text: string) => string): CallRecorder {
  // Copy: a slice would keep the whole text in memory.
  const brief = (text: string): string =>
    text.length <= maxName ? text : Buffer.from(`${redact(text).slice(0, maxName - 1)}…`).toString()
  return {
    begin: ({ id, parent, caller, entry, trail }, operation, at, start) => ({
      ...{ id, parent, at, start, trail },
      agent: brief(caller.agent),
      principal: brief(caller.principal),
      operation: brief(operation),
      server: brief(entry.server),
      name: brief(entry.name),
      ms: undefined,
      outcome: undefined,
      code: undefined,
      shown: false,
      waiting: false,
      bytes: 0,
    }),
    end(kept, { at, start, ms, outcome, trail }) {
      kept.at = at
      kept.start = start
      kept.ms = ms
      kept.outcome = outcome.kind
      kept.code = outcome.code === undefined ? undefined : brief(outcome.code)
      kept.trail = trail
      kept.bytes = bytesOf(kept)
    },
  }
}

const emptyCall = 300
const emptyStep = 200

/** Counts texts as if they were not shared. */
function bytesOf({ id, parent = '', agent, principal, operation, server, name, code = '', trail }: CallRecord): number {
  const names = agent.length + principal.length + operation.length + server.length + name.length
  let bytes = emptyCall + 2 * (id.length + parent.length + names + code.length)
  for (const { error = '' } of trail?.steps ?? []) bytes += emptyStep + 2 * error.length
  return bytes
}

export interface CallSummary {
  readonly id: string
  readonly parent: string | null
  readonly at: number
  /** Null while the call runs. */
  readonly ms: number | null
  readonly agent: string
  readonly principal: string
  readonly operation: string
  readonly server: string
  readonly name: string
  readonly outcome: 'running' | 'answered' | 'tool_error' | 'denied' | 'failed'
  readonly code: string | null
  readonly cache: 'hit' | 'miss' | 'joined' | null
}

interface StepView {
  readonly name: string
  /** Since the start of the call. */
  readonly startMs: number
  /** Null while the step runs. */
  readonly ms: number | null
  readonly error: string | null
}

export interface CallTimeline extends CallSummary {
  readonly steps: readonly StepView[]
  readonly children: readonly CallSummary[]
}

/** Any name may hold a secret (B6). */
export const callSummary = (kept: CallRecord, redact: (text: string) => string): CallSummary => ({
  id: kept.id,
  parent: kept.parent ?? null,
  at: kept.at,
  ms: kept.ms ?? null,
  agent: redact(kept.agent),
  principal: redact(kept.principal),
  operation: redact(kept.operation),
  server: redact(kept.server),
  name: redact(kept.name),
  outcome: kept.outcome ?? 'running',
  code: kept.code === undefined ? null : redact(kept.code),
  cache: kept.trail?.cache ?? null,
})

const maxSteps = 100

export const stepViews = ({ trail, start }: CallRecord, redact: (text: string) => string): StepView[] =>
  (trail?.steps ?? []).slice(0, maxSteps).map(({ name, start: began, end, error }) => ({
    name,
    startMs: began - start,
    ms: end === undefined ? null : end - began,
    error: error === undefined ? null : redact(error).slice(0, maxName),
  }))
