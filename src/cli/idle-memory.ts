import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from '../core/clock.ts'

/** Measures this process's CPU time and memory, and releases unused memory. */
interface ProcessMemory {
  /** CPU time since the start, in milliseconds. */
  cpuMs(): number
  /** Heap that is allocated and unused, in bytes. */
  spare(): number
  /** Returns unused heap to the system; takes tens of milliseconds. */
  release(): void
}

const checkMs = 10_000
/** Less CPU time than this between two checks counts as idle. */
const idleCpuMs = 100
/** Less unused heap than this is not worth the pause. */
const worthBytes = 8 * 1024 * 1024
/** When idle, keep the heap for 10× the CPU time used since the last release, up to five minutes. */
const keepFactor = 10
const maxMs = 300_000

/**
 * Returns memory to the system when idle, because V8 keeps the heap at the size that a busy period needed. It waits a
 * while after a busy period: releasing memory also drops compiled code, which makes the next calls slow.
 */
export function releaseWhenIdle(clock: Clock, memory: ProcessMemory = thisProcess()): Disposable {
  let before = memory.cpuMs()
  let released = before
  let idleMs = 0
  const check = () => {
    const now = memory.cpuMs()
    idleMs = now - before < idleCpuMs ? idleMs + checkMs : 0
    const keepMs = Math.min(keepFactor * (now - released), maxMs)
    if (idleMs > 0 && idleMs >= keepMs && memory.spare() > worthBytes) {
      memory.release()
      released = memory.cpuMs()
    }
    before = memory.cpuMs()
    timer = clock.after(checkMs, check)
  }
  let timer = clock.after(checkMs, check)
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }
}

/** How much the heap may grow before a collection, as a percentage of its used size. */
const growthPercent = 300

function thisProcess(): ProcessMemory {
  // Collect less often: with results of 1 MiB, full collections every few calls took longer than the calls. The garbage
  // from a busy period is released once that period is over.
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`)
  return {
    cpuMs() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1000
    },
    spare() {
      const { heapTotal, heapUsed } = process.memoryUsage()
      return heapTotal - heapUsed
    },
    release() {
      setFlagsFromString('--expose-gc')
      const collect = runInNewContext('gc') as (how: object) => void
      // Only this type of collection shrinks the young generation, which holds most of the memory.
      collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    },
  }
}
