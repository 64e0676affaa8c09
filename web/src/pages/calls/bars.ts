import type { CallDetail } from '../../../../src/serve/admin/contract.ts'

/** `left` and `width` are percentages of the duration of the call. */
export interface TimeBar {
  readonly name: string
  readonly startMs: number
  readonly ms: number | null
  readonly left: number
  readonly width: number
  readonly error: string | null
}

const words: Readonly<Record<string, string>> = {
  approve: 'waiting for approval',
  queue: 'queued',
  attempt: 'attempt',
}

/** Bars of steps that are still running extend to the end. */
export function barsOf({ steps, ms, at }: Pick<CallDetail, 'steps' | 'ms' | 'at'>, now: number): readonly TimeBar[] {
  const known = Math.max(...steps.map((step) => step.startMs + (step.ms ?? 0)), 0)
  const whole = Math.max(ms ?? now - at, known, 0.001)
  const attempts = steps.filter(({ name }) => name === 'attempt').length
  let attempt = 0
  return steps.map((step) => {
    const length = step.ms ?? whole - step.startMs
    const word = Object.hasOwn(words, step.name) ? (words[step.name] as string) : step.name
    if (step.name === 'attempt') attempt++
    return {
      name: step.name === 'attempt' && attempts > 1 ? `${word} ${attempt}` : word,
      startMs: step.startMs,
      ms: step.ms,
      left: percent(step.startMs / whole),
      width: percent(length / whole),
      error: step.error,
    }
  })
}

const percent = (share: number): number => Math.min(100, Math.max(0, share * 100))
