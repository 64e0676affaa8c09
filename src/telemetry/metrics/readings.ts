import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { BudgetUse } from '../../core/limits/budget.ts'
import type { Labels, MetricReading, ReadFamilyOptions } from './family.ts'

/** Functions that read values from other components. If one is missing, its metrics are omitted. */
export interface Readings {
  load?(): LoadReading & { readonly servers: Readonly<Record<string, LoadReading>> }
  budgets?(): Iterable<BudgetUse>
  servers?(): Iterable<ServerReading>
  cache?(): { readonly entries: number; readonly bytes: number; readonly evicted: number }
  sessions?(): number
  reloads?(): {
    readonly attempts: number
    readonly successes: number
    readonly last_success_at: string | null
    /** The reloads, newest first. */
    readonly history: readonly { readonly error?: string }[]
  }
  audit?(): { readonly recording: boolean; readonly outages: number }
  stores?(): Iterable<StoreReading>
  /** How many context tokens the tools use: as exposed, and if all were listed directly (B8). */
  tokens?(): { readonly direct: number; readonly exposed: number; readonly saved: number }
}

interface LoadReading {
  readonly inFlight: number
  readonly queued: number
}

export interface StoreReading {
  readonly name: string
  readonly up: boolean
  /** Why it cannot be used, if known. */
  readonly problem?: string | undefined
  /** How many records have not been copied yet, if known, and the time since the store last had all records. */
  readonly behind?: { readonly records: number | undefined; readonly seconds: number }
}

export interface ServerReading {
  readonly name: string
  readonly health: 'healthy' | 'degraded' | 'unhealthy' | 'needs-auth' | 'starting' | 'stale' | 'disabled'
  readonly breaker: 'closed' | 'half-open' | 'open'
  readonly connections: number
  readonly restarts: number
  readonly findings: number
}

export const readingFamilies = (readings: Readings, labels: Labels): ReadFamilyOptions[] => [
  ...(readings.servers ? serverFamilies(readings.servers, labels) : []),
  ...(readings.load ? loadFamilies(readings.load, labels) : []),
  ...(readings.budgets ? budgetFamilies(readings.budgets) : []),
  ...(readings.cache ? cacheFamilies(readings.cache) : []),
  ...(readings.sessions ? [gauge('toolway_sessions', 'Open client sessions.', readings.sessions)] : []),
  ...(readings.reloads ? reloadFamilies(readings.reloads) : []),
  ...(readings.audit ? auditFamilies(readings.audit) : []),
  ...(readings.stores ? storeFamilies(readings.stores) : []),
  ...(readings.tokens ? tokenFamilies(readings.tokens) : []),
]

type Read<Key extends keyof Readings> = NonNullable<Readings[Key]>

/** States that must not trigger alerts. Servers that are starting or have not been used yet count as fine. */
const fine: ReadonlySet<ServerReading['health']> = new Set(['healthy', 'starting', 'stale'])

/** A metric with a single value, which may be missing. */
const single =
  (type: 'gauge' | 'counter') =>
  (name: string, help: string, read: () => number | undefined): ReadFamilyOptions => ({
    ...{ name, help, type },
    read: () => readingOf([], read()),
  })

const gauge = single('gauge')
const counter = single('counter')

const readingOf = (values: readonly string[], value: number | undefined): MetricReading[] =>
  value === undefined ? [] : [[values, value]]

/** Metrics with one value for each item that has a value. `merge` combines items with the same label. */
function labelled<Item>(label: string, read: () => readonly (readonly [name: string, item: Item])[]) {
  const family =
    (type: ReadFamilyOptions['type']) =>
    (
      name: string,
      help: string,
      value: (item: Item) => number | undefined,
      merge?: ReadFamilyOptions['merge'],
    ): ReadFamilyOptions => ({
      ...{ name, help, type, merge, labels: [label] },
      read: () => read().flatMap(([name, item]) => readingOf([name], value(item))),
    })
  return { gauge: family('gauge'), counter: family('counter') }
}

function storeFamilies(stores: Read<'stores'>): ReadFamilyOptions[] {
  const byStore = labelled('store', () => [...stores()].map((store) => [store.name, store] as const))
  return [
    byStore.gauge('toolway_store_up', '1 while a store is available, 0 while the gateway runs without it.', ({ up }) =>
      up ? 1 : 0,
    ),
    byStore.gauge(
      'toolway_store_behind_records',
      "This process's audit records that are not yet copied to a shared store.",
      ({ behind }) => behind?.records,
    ),
    byStore.gauge(
      'toolway_store_behind_seconds',
      "Time since a shared store last had all of this process's records.",
      ({ behind }) => behind?.seconds,
    ),
  ]
}

const breakerStates = { closed: 0, 'half-open': 1, open: 2 } as const

function serverFamilies(servers: Read<'servers'>, labels: Labels): ReadFamilyOptions[] {
  const byServer = labelled('server', () =>
    [...servers()].map((server) => [labels.server(server.name), server] as const),
  )
  return [
    byServer.gauge(
      'toolway_tool_active_connections',
      'Open connections to MCP servers.',
      ({ connections }) => connections,
    ),
    byServer.gauge(
      'toolway_server_healthy',
      '1 if the server is healthy, starting or not in use yet, 0 if it is degraded or unhealthy. Disabled servers are omitted.',
      ({ health }) => (health === 'disabled' ? undefined : fine.has(health) ? 1 : 0),
      Math.min,
    ),
    byServer.gauge(
      'toolway_breaker_state',
      "State of a server's circuit breaker: 0 closed, 1 half-open, 2 open.",
      ({ breaker }) => breakerStates[breaker],
      Math.max,
    ),
    byServer.counter('toolway_server_restarts_total', "Restarts of a server's process.", ({ restarts }) => restarts),
    byServer.gauge(
      'toolway_server_findings',
      'Kinds of data from a server that are shortened, left out or refused.',
      ({ findings }) => findings,
      Math.max,
    ),
  ]
}

function loadFamilies(load: Read<'load'>, labels: Labels): ReadFamilyOptions[] {
  const byServer = labelled('server', () =>
    Object.entries(load().servers).map(([name, own]) => [labels.server(name), own] as const),
  )
  return [
    gauge('toolway_in_flight', 'Calls in flight.', () => load().inFlight),
    gauge('toolway_queue_depth', 'Queued calls.', () => load().queued),
    byServer.gauge('toolway_server_in_flight', 'Calls in flight by server.', ({ inFlight }) => inFlight),
    byServer.gauge('toolway_server_queue_depth', 'Queued calls by server.', ({ queued }) => queued),
  ]
}

function budgetFamilies(budgets: Read<'budgets'>): ReadFamilyOptions[] {
  const byBudget = labelled('budget', () => [...budgets()].map((budget) => [budget.name, budget] as const))
  return [
    byBudget.gauge(
      'toolway_budget_used',
      'Things that wait or are kept, by kind: calls, queued calls, requests, sessions, streams, bytes and others.',
      ({ used }) => used,
    ),
    byBudget.gauge(
      'toolway_budget_largest',
      'The part of a budget that the caller with the largest use has.',
      ({ largest }) => largest,
      Math.max,
    ),
    byBudget.gauge('toolway_budget_limit', 'The upper bound of a budget for all callers.', ({ limit }) => limit),
    byBudget.counter(
      'toolway_budget_refused_total',
      'How often something was refused, ended or dropped because a budget was used up.',
      ({ refused }) => refused,
    ),
  ]
}

const cacheFamilies = (cache: Read<'cache'>): ReadFamilyOptions[] => [
  gauge('toolway_cache_entries', 'Cached results.', () => cache().entries),
  gauge('toolway_cache_size_bytes', 'Memory used by cached results.', () => cache().bytes),
  counter('toolway_cache_evictions_total', 'Results evicted before they expired.', () => cache().evicted),
]

const reloadFamilies = (reloads: Read<'reloads'>): ReadFamilyOptions[] => [
  counter('toolway_reload_attempts_total', 'Attempts to apply a changed configuration.', () => reloads().attempts),
  counter(
    'toolway_reload_failures_total',
    'Failed attempts to apply a changed configuration.',
    () => reloads().attempts - reloads().successes,
  ),
  gauge('toolway_reload_last_succeeded', '1 unless the last attempt failed.', () =>
    reloads().history[0]?.error === undefined ? 1 : 0,
  ),
  gauge(
    'toolway_reload_last_success_timestamp_seconds',
    'Time of the last successful reload; absent before the first one.',
    () => {
      const at = reloads().last_success_at
      return at === null ? undefined : Date.parse(at) / 1000
    },
  ),
]

const auditFamilies = (audit: Read<'audit'>): ReadFamilyOptions[] => [
  gauge('toolway_audit_recording', '1 while operations are recorded, 0 during an outage.', () =>
    audit().recording ? 1 : 0,
  ),
  counter('toolway_audit_outages_total', 'Number of times the audit log became unwritable.', () => audit().outages),
]

const tokenFamilies = (tokens: Read<'tokens'>): ReadFamilyOptions[] => [
  {
    name: 'toolway_context_tokens',
    help: 'Estimated context tokens used by the tools: as exposed, if all were listed directly, and the difference.',
    type: 'gauge',
    labels: ['kind'],
    read() {
      const { direct, exposed, saved } = tokens()
      return [
        [['direct'], direct],
        [['exposed'], exposed],
        [['saved'], saved],
      ]
    },
  },
]

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
