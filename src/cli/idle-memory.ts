import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from '../core/clock.ts'

/** How a process is, as far as its memory goes. */
interface ProcessMemory {
  /** Processor time since it began, in milliseconds. */
  cpuMs(): number
  /** Memory that is held and not in use, in bytes. */
  spare(): number
  /** Gives it back. Takes some tens of milliseconds. */
  release(): void
}

const lookMs = 10_000
/** Less work than this between two looks is no work at all. */
const idleCpuMs = 100
/** Less than this is not worth a pause. */
const worthBytes = 8 * 1024 * 1024
/** What was worked for is kept for so many times as long as the work took, but not for ever. */
const keptFor = 10
const maxMs = 300_000

/**
 * Gives memory back to the system once nothing is going on: the engine keeps what a busy time, or the start, has grown
 * its heap to, and somebody's laptop has better uses for it. Not at once where there was much to do: with the memory goes
 * what was compiled, and whoever pauses for a moment would find everything cold.
 */
export function releaseWhenIdle(clock: Clock, footing: ProcessMemory = thisProcess()): Disposable {
  let before = footing.cpuMs()
  let released = before
  let idleMs = 0
  const look = () => {
    const now = footing.cpuMs()
    idleMs = now - before < idleCpuMs ? idleMs + lookMs : 0
    const patienceMs = Math.min(keptFor * (now - released), maxMs)
    if (idleMs > 0 && idleMs >= patienceMs && footing.spare() > worthBytes) {
      footing.release()
      released = footing.cpuMs()
    }
    before = footing.cpuMs()
    timer = clock.after(lookMs, look)
  }
  let timer = clock.after(lookMs, look)
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }
}

/** How much garbage may lie about before it is collected, in percent of what is in use. */
const untidy = 300

function thisProcess(): ProcessMemory {
  // Results of a mebibyte had all of the heap looked through every few calls, which took longer than the calls. What a
  // busy time piles up is given back when it is over.
  setFlagsFromString(`--heap-growing-percent=${untidy}`)
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
      // Only this kind shrinks the space of the young, which is most of what is held.
      collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    },
  }
}
