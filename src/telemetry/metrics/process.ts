import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { MetricReading, ReadFamilyOptions } from './family.ts'
import { counter, gauge } from './readings.ts'

/** The sampling interval of the event loop monitor. Every measured delay includes it, so it is subtracted. */
const lookEveryMs = 20

const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - lookEveryMs / 1000)

/** Process metrics. Monitors the event loop until disposed. */
export function processFamilies(version: string, startedAt: number): Disposable & { families: ReadFamilyOptions[] } {
  const delay = monitorEventLoopDelay({ resolution: lookEveryMs })
  delay.enable()
  return {
    families: [
      counter('toolway_process_cpu_seconds_total', 'CPU time used by the process.', () => {
        const { user, system } = process.cpuUsage()
        return (user + system) / 1e6
      }),
      gauge('toolway_process_resident_memory_bytes', 'Resident memory used by the process.', () =>
        process.memoryUsage.rss(),
      ),
      gauge('toolway_process_heap_used_bytes', 'JavaScript heap in use.', () => process.memoryUsage().heapUsed),
      gauge(
        'toolway_process_start_time_seconds',
        'Process start time in seconds since the epoch.',
        () => startedAt / 1000,
      ),
      {
        name: 'toolway_event_loop_lag_seconds',
        help: 'Event loop delay since the last scrape.',
        type: 'gauge',
        labels: ['of'],
        read() {
          const { mean, max } = delay
          const late: MetricReading[] = [
            [['mean'], Number.isNaN(mean) ? 0 : seconds(mean)],
            [['p99'], seconds(delay.percentile(99))],
            [['max'], seconds(max)],
          ]
          delay.reset()
          return late
        },
      },
      {
        name: 'toolway_build_info',
        help: 'Always 1. The labels describe the build.',
        type: 'gauge',
        labels: ['version', 'node'],
        read: () => [[[version, process.version], 1]],
      },
    ],
    [Symbol.dispose]: () => void delay.disable(),
  }
}
