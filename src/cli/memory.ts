import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from '../core/clock.ts'

/**
 * Keeps the memory of this process small: bounded while it is busy, and returned to the system when it is idle.
 * `maxBytes` is what the process may use; by default, what its container allows.
 */
export function limitMemory(clock: Clock, maxBytes = containerBytes()): Disposable {
  const limits = new DisposableStack()
  // V8 would allocate what many calls need where only full collections look. From there, it keeps whole calls alive (0101).
  setFlagsFromString('--no-allocation-site-pretenuring')
  limits.use(boundGarbage(garbageLimits(maxBytes)))
  limits.use(releaseWhenIdle(clock))
  return limits
}

/** The settings of V8 that decide how much garbage it lets accumulate. */
interface HeapSettings {
  /** Bytes in use, with buffers. Right after a full collection, almost none of them are garbage. */
  used(): number
  /** Size of the young generation, in bytes. */
  young(): number
  /** Sets how much the heap may grow before the next full collection, as a percentage of its used size. */
  setGrowth(percent: number): void
  setYoungGrows(grows: boolean): void
}

/** How much garbage may accumulate. */
export interface GarbageLimits {
  /** Garbage between two full collections, in bytes. */
  readonly garbage: number
  /** Size of the young generation, in bytes. */
  readonly young: number
}

/** Measured: more garbage makes calls no faster (0101). */
const mostGarbage = 40e6
/** With less, results of 1 MiB cause so many full collections that these take longer than the calls. */
const leastGarbage = 14e6
/** What a gateway uses besides garbage: code, the heap in use, and other threads. */
const neededBytes = 130e6

/** The garbage that a process may have if it may use `maxBytes` in all. */
export function garbageLimits(maxBytes: number): GarbageLimits {
  const garbage = Math.min(mostGarbage, Math.max(leastGarbage, 0.7 * (maxBytes - neededBytes)))
  return { garbage, young: garbage < mostGarbage ? 8e6 : 32e6 }
}

/** The memory limit of the container, or infinite without one. */
const containerBytes = (): number => process.constrainedMemory() || Number.POSITIVE_INFINITY

const minGrowth = 30
const maxGrowth = 800

/** After each garbage collection, sets how much the heap may grow, based on the memory then in use. */
export function boundGarbage({ garbage, young }: GarbageLimits, heap = thisHeap()): Disposable {
  let grows = true
  const afterCollection = (full: boolean) => {
    if (full) {
      const percent = Math.round((100 * garbage) / heap.used())
      heap.setGrowth(Math.min(maxGrowth, Math.max(minGrowth, percent)))
    }
    if (grows === heap.young() < young) return
    grows = !grows
    heap.setYoungGrows(grows)
  }
  afterCollection(true)
  const observer = new PerformanceObserver((list) => afterCollection(list.getEntries().some(isFull)))
  observer.observe({ entryTypes: ['gc'] })
  return { [Symbol.dispose]: () => observer.disconnect() }
}

const isFull = (entry: PerformanceEntry): boolean =>
  (entry as PerformanceEntry & { detail: { kind: number } }).detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR

function thisHeap(): HeapSettings {
  return {
    used() {
      const { used_heap_size, external_memory } = getHeapStatistics()
      return used_heap_size + external_memory
    },
    young: () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0,
    setGrowth: (percent) => setFlagsFromString(`--heap-growing-percent=${percent}`),
    setYoungGrows: (grows) => setFlagsFromString(`--semi-space-growth-factor=${grows ? 2 : 1}`),
  }
}

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

function thisProcess(): ProcessMemory {
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
      // Only this type of collection shrinks the young generation.
      collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    },
  }
}
