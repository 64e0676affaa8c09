import type { CallDetail } from '../../../../src/serve/admin/contract.ts'

/** One bar in the timeline. `left` and `width` are percentages of the call's duration. */
export interface TimeBar {
  readonly name: string
  readonly startMs: number
  readonly ms: number | null
  readonly left: number
  readonly width: number
  readonly error: string | null
}

const stepNames: Readonly<Record<string, string>> = {
  policy: 'policy and audit',
  checks: 'arguments, guards and limits',
  approve: 'waiting for approval',
  cache: 'cache lookup',
  joined: 'waiting for an identical call',
  pause: 'pause before the retry',
  queue: 'queued',
  attempt: 'attempt',
}

/** The bars for a call. Bars for steps that are still running extend to the end. */
export function timelineBars(
  { steps, ms, at }: Pick<CallDetail, 'steps' | 'ms' | 'at'>,
  now: number,
): readonly TimeBar[] {
  const knownMs = Math.max(...steps.map((step) => step.startMs + (step.ms ?? 0)), 0)
  const totalMs = Math.max(ms ?? now - at, knownMs, 0.001)
  const attempts = steps.filter(({ name }) => name === 'attempt').length
  let attempt = 0
  return steps.map((step) => {
    const duration = step.ms ?? totalMs - step.startMs
    const label = Object.hasOwn(stepNames, step.name) ? (stepNames[step.name] as string) : step.name
    if (step.name === 'attempt') attempt++
    return {
      name: step.name === 'attempt' && attempts > 1 ? `${label} ${attempt}` : label,
      startMs: step.startMs,
      ms: step.ms,
      left: percent(step.startMs / totalMs),
      width: percent(duration / totalMs),
      error: step.error,
    }
  })
}

const percent = (share: number): number => Math.min(100, Math.max(0, share * 100))
