/** Loaded into the gateway with `--import`: counts the work of calls on orders from the parent process. */
import { type HeapProfiler, Session } from 'node:inspector/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promiseHooks } from 'node:v8'
import type { CounterOrder, FunctionCounts } from './orders.ts'

const source = join(import.meta.dirname, '../../src')
const inspector = new Session()
let heapBefore = 0
let collections = 0
let promises = 0
let stopPromises: (() => void) | undefined

const isOurs = (url: string): boolean =>
  url.startsWith('file:') && !relative(source, fileURLToPath(url)).startsWith('..')

/** How often each function of `src/` has run since the last time, as `file:name:offset`. */
async function functionsThatRan(): Promise<FunctionCounts> {
  const { result } = await inspector.post('Profiler.takePreciseCoverage')
  return result
    .filter(({ url }) => isOurs(url))
    .flatMap(({ url, functions }) => {
      const file = relative(source, fileURLToPath(url))
      return functions.flatMap(({ functionName, ranges: [range] }): FunctionCounts => {
        // The body of a module ran when it was loaded.
        if (range === undefined || range.count === 0 || (functionName === '' && range.startOffset === 0)) return []
        return [[`${file}:${functionName}:${range.startOffset}`, range.count]]
      })
    })
}

type Allocations = HeapProfiler.SamplingHeapProfileNode

/** The bytes that each function allocated itself; what native functions allocate is their caller's. */
function bytesByFunction(head: Allocations): FunctionCounts {
  const bytes = new Map<string, number>()
  const add = ({ callFrame, selfSize, children }: Allocations, caller: string) => {
    const { url, functionName } = callFrame
    const name = isOurs(url) ? `${relative(source, fileURLToPath(url))}:${functionName}:0` : caller
    bytes.set(name, (bytes.get(name) ?? 0) + selfSize)
    for (const child of children) add(child, name)
  }
  add(head, 'node::0')
  return [...bytes]
}

const orders: Readonly<Record<CounterOrder, () => unknown>> = {
  async 'count functions'() {
    inspector.connect()
    await inspector.post('Profiler.enable')
    await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    return functionsThatRan()
  },
  'functions that ran': functionsThatRan,
  async 'stop counting functions'() {
    await inspector.post('Profiler.stopPreciseCoverage')
    await inspector.post('Profiler.disable')
    inspector.disconnect()
  },
  'count bytes'() {
    collections = 0
    heapBefore = process.memoryUsage().heapUsed
  },
  // The young generation is so large that nothing is collected: the heap has grown by all that was allocated.
  bytes: () => ({ bytes: process.memoryUsage().heapUsed - heapBefore, collections }),
  async 'sample bytes'() {
    inspector.connect()
    await inspector.post('HeapProfiler.startSampling', {
      samplingInterval: 128,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    })
  },
  async 'bytes by function'() {
    const { profile } = await inspector.post('HeapProfiler.stopSampling')
    inspector.disconnect()
    return bytesByFunction(profile.head)
  },
  'count promises'() {
    promises = 0
    stopPromises = promiseHooks.onInit(() => promises++) as unknown as () => void
  },
  promises() {
    stopPromises?.()
    return promises
  },
}

const observer = new PerformanceObserver((list) => {
  collections += list.getEntries().length
})
observer.observe({ entryTypes: ['gc'] })

process.on('message', async (order: CounterOrder) => process.send?.({ order, answer: await orders[order]?.() }))
process.channel?.unref()
