/** Loaded into a process under test with `node --import`: reports memory and timers when asked through IPC. */
import { createHook } from 'node:async_hooks'
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

// Counts unreferenced timers too, which `process.getActiveResourcesInfo` leaves out.
const timers = new Set<number>()
createHook({
  init(id, type) {
    if (type === 'Timeout') timers.add(id)
  },
  destroy(id) {
    timers.delete(id)
  },
  // Tracking each promise would take more time and memory than many a call.
  trackPromises: false,
}).enable()

/** Memory after the last full collection that V8 did on its own. */
let afterCollection = process.memoryUsage()
new PerformanceObserver((list) => {
  const isMajor = (entry: { detail?: { kind?: number } }) => entry.detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR
  if (list.getEntries().some((entry) => isMajor(entry as { detail?: { kind?: number } })))
    afterCollection = process.memoryUsage()
}).observe({ entryTypes: ['gc'] })

process.on('message', async (message) => {
  if (message !== 'observe' && message !== 'observe after collection') return
  if (message === 'observe after collection') {
    for (let round = 0; round < 3; round++) {
      // Objects released in one turn of the event loop can be collected in the next.
      await new Promise((resolve) => setImmediate(resolve))
      collect()
    }
    afterCollection = process.memoryUsage()
  }
  const { heapUsed, external } = afterCollection
  process.send?.({ heap: heapUsed, external, rss: process.memoryUsage.rss(), timers: timers.size })
})
// Do not keep the process running for this channel.
process.channel?.unref()
