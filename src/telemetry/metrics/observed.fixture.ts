import { callOf } from '../../core/call.fixture.ts'
import type { Call } from '../../core/call.ts'
import type { Observed, Observer } from '../../core/observer.ts'

export type Told = Partial<Omit<Observed, 'call'>> & { readonly call?: Partial<Call>; readonly agent?: string }

/** An operation that has ended; by default a tool call that took ten milliseconds. */
export function observedOf({ call: changes = {}, agent, ...rest }: Told = {}): Observed {
  const call = callOf(changes)
  return {
    call: agent === undefined ? call : { ...call, caller: { ...call.caller, agent } },
    operation: 'call_tool',
    at: 1_800_000_000_000,
    start: 1_000,
    ms: 10,
    outcome: { kind: 'answered' },
    trail: { steps: [] },
    ...rest,
    end: rest.end ?? (rest.start ?? 1_000) + (rest.ms ?? 10),
  }
}

/** Lets an observer see operations that are over. */
export function tell(observer: Observer, ...all: readonly Told[]): void {
  for (const told of all) observer.ended(observedOf(told))
}
