import { type KeptCall, maxName } from './kept-call.ts'

/** A call as people see it. */
export interface CallView {
  readonly id: string
  readonly parent: string | null
  readonly at: number
  /** Null while it runs. */
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

export interface StepView {
  readonly name: string
  /** After the call began. */
  readonly startMs: number
  /** Null while it lasts. */
  readonly ms: number | null
  readonly error: string | null
}

/** A call with what happened to it on its way, and the calls that it made. */
export interface CallTimeline extends CallView {
  readonly steps: readonly StepView[]
  readonly children: readonly CallView[]
}

/** Any name may hold a secret (B6). */
export const callView = (kept: KeptCall, redact: (text: string) => string): CallView => ({
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

/** Beyond this many steps a timeline is no longer looked at. */
const maxSteps = 100

export const stepViews = ({ trail, start }: KeptCall, redact: (text: string) => string): StepView[] =>
  (trail?.steps ?? []).slice(0, maxSteps).map(({ name, start: began, end, error }) => ({
    name,
    startMs: began - start,
    ms: end === undefined ? null : end - began,
    error: error === undefined ? null : redact(error).slice(0, maxName),
  }))
