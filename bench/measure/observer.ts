/** Loaded into a process under test (`node --import`): tells what it holds, when it is asked to. */
import { createHook } from 'node:async_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

// Also those that would not keep the process alive, which Node does not list.
const timers = new Set<number>()
createHook({
  init(id, type) {
    if (type === 'Timeout') timers.add(id)
  },
  destroy(id) {
    timers.delete(id)
  },
}).enable()

process.on('message', async (message) => {
  if (message !== 'observe') return
  for (let round = 0; round < 3; round++) {
    // What was let go of in this turn is garbage in the next.
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  process.send?.({ heap: heapUsed, external, rss, timers: timers.size })
})
// Whoever asks is no reason to go on.
process.channel?.unref()
