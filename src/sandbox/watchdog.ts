import type { Clock } from '../core/clock.ts'
import type { Child } from './child.ts'

const everyMs = 50
/** The child counts more exactly, and can say more when it notices first. */
const withGrace = (cpuMs: number) => cpuMs * 1.1 + 100

/** Tells when a child has used its time, for programs that do not let it notice: some work cannot be interrupted. */
export function watchCpu(options: {
  readonly child: Child
  readonly cpuMs: number
  readonly clock: Clock
  exceeded(): void
}): Disposable {
  const { child, cpuMs, clock } = options
  const before = child.cpuMs() ?? 0
  let timer = clock.after(everyMs, look)
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }

  function look(): void {
    const used = (child.cpuMs() ?? before) - before
    if (used > withGrace(cpuMs)) options.exceeded()
    else timer = clock.after(everyMs, look)
  }
}
