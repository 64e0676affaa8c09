import type { CallDetail } from '../../../../src/admin/contract.ts'

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
  ask: 'waiting for an answer',
  cache: 'cache lookup',
  joined: 'waiting for an identical call',
  pause: 'pause before the retry',
  queue: 'queued',
  attempt: 'attempt',
}

/** When the last step ended, from the start of the call. */
const lastEnd = (steps: CallDetail['steps']): number =>
  Math.max(...steps.map(({ startMs, ms }) => startMs + (ms ?? 0)), 0)

/** How long a call waited for people, which is not part of its duration. */
export const waitedMs = ({ steps, ms }: Pick<CallDetail, 'steps' | 'ms'>): number =>
  ms !== null && steps.some(({ name }) => name === 'approve' || name === 'ask') ? Math.max(0, lastEnd(steps) - ms) : 0

/** The bars for a call. Bars for steps that are still running extend to the end. */
export function timelineBars(
  { steps, ms, at }: Pick<CallDetail, 'steps' | 'ms' | 'at'>,
  now: number,
): readonly TimeBar[] {
  const totalMs = Math.max(ms ?? now - at, lastEnd(steps), 0.001)
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
