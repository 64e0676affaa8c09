import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createMetrics, type MetricsOptions } from './metrics.ts'
import type { Readings } from './readings.ts'

/** A gateway with two servers, one of which is in trouble. */
export const everyReading: Required<Readings> = {
  load: () => ({
    inFlight: 3,
    queued: 2,
    servers: { files: { inFlight: 2, queued: 0 }, memory: { inFlight: 1, queued: 2 } },
  }),
  servers: () => [
    { name: 'files', health: 'healthy', breaker: 'closed', connections: 1, restarts: 0, findings: 0 },
    { name: 'memory', health: 'unhealthy', breaker: 'open', connections: 0, restarts: 4, findings: 2 },
    { name: 'search', health: 'stale', breaker: 'half-open', connections: 2, restarts: 0, findings: 0 },
    { name: 'retired', health: 'disabled', breaker: 'closed', connections: 0, restarts: 0, findings: 0 },
  ],
  budgets: () => [
    { name: 'calls', used: 3, limit: 256, perCaller: 192, largest: 2, refused: 0 },
    { name: 'streams', used: 9, limit: 4096, perCaller: 2048, largest: 8, refused: 4 },
  ],
  cache: () => ({ entries: 12, bytes: 3456, evicted: 7 }),
  sessions: () => 5,
  reloads: () => ({
    attempts: 3,
    successes: 2,
    last_success_at: '2027-01-15T08:00:00.500Z',
    history: [{ error: 'bad' }],
  }),
  audit: () => ({ recording: false, outages: 1 }),
  stores: () => [
    { name: 'redis', up: false },
    { name: 'postgres', up: true, behind: { records: 7, seconds: 1.5 } },
  ],
  tokens: () => ({ direct: 9000, exposed: 1000, saved: 8000 }),
}

export const metricsOf = (changes: Partial<MetricsOptions> = {}) =>
  createMetrics({
    version: '1.2.3',
    clock: createManualClock(),
    redact: (text) => text.replaceAll('hunter2-secret', '[redacted]'),
    readings: everyReading,
    ...changes,
  })
