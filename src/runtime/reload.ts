import { createHmac, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Audit } from '../core/audit.ts'
import type { Clock } from '../core/clock.ts'
import { osUser } from '../core/home.ts'
import type { Log } from '../core/log.ts'
import { listen } from '../lib/listen.ts'
import {
  type ConfigDifference,
  compareConfigs,
  describeChanges,
  isEmpty,
  keepFixedSettings,
  type MayShow,
} from './config-difference.ts'

export interface ReloadAttempt {
  readonly at: string
  /** The error message; absent if the reload succeeded. */
  readonly error?: string
  readonly difference?: ConfigDifference
}

export interface ReloadStatus {
  readonly attempts: number
  readonly successes: number
  /** The last error. A later success does not clear it, so compare `last_error_at` with `last_success_at`. */
  readonly last_error: string | null
  readonly last_error_at: string | null
  readonly last_success_at: string | null
  /** The latest attempts, newest first. */
  readonly history: readonly ReloadAttempt[]
}

export interface Reload {
  /** Loads and applies the configuration. Never rejects; the outcome is in `status`. */
  now(): Promise<void>
  status(): ReloadStatus
}

export interface ReloadOptions {
  current(): LoadedConfig
  load(): Promise<LoadedConfig>
  /** Applies a configuration completely, or throws and changes nothing. */
  apply(loaded: LoadedConfig): Promise<void>
  /** Receives a description of each attempt; `mayShow` says which values it may contain. */
  readonly history?: ReloadHistory
  readonly mayShow?: MayShow
  readonly record?: Pick<ConfigAudit, 'applied' | 'refused'>
  readonly clock: Clock
  readonly log: Log
}

const maxAttempts = 20

/** Applies changed configurations, one at a time. If one is invalid, the current configuration stays active (G8). */
export function createReload(options: ReloadOptions): Reload {
  const { current, load, apply, history: events, mayShow = () => false, clock, log } = options
  let attempts = 0
  let successes = 0
  let lastError: { readonly text: string; readonly at: string } | undefined
  let lastSuccessAt: string | null = null
  const history: ReloadAttempt[] = []
  let running: Promise<void> | undefined
  let again = false

  const keep = (attempt: ReloadAttempt) => {
    history.unshift(attempt)
    history.length = Math.min(history.length, maxAttempts)
  }

  const attempt = async () => {
    const began = clock.now()
    const at = new Date(began).toISOString()
    attempts++
    try {
      const loaded = await load()
      const before = current()
      requireFiles(before, loaded)
      const changes = describeChanges(before.config, loaded.config, mayShow)
      const difference = compareConfigs(before.config, loaded.config)
      const config = keepFixedSettings(before.config, loaded.config)
      await apply({ ...loaded, config })
      successes++
      lastSuccessAt = at
      keep({ at, difference })
      options.record?.applied(config, difference)
      events?.add({ at: began, ok: true, error: null, changes })
      if (!isEmpty(difference)) log.info({ ...difference, changes }, 'configuration reloaded')
      for (const key of difference.atNextStart) log.warn({ key }, `${key} has changed; restart to apply it`)
    } catch (thrown) {
      const text = thrown instanceof Error ? thrown.message : String(thrown)
      lastError = { text, at }
      keep({ at, error: text })
      options.record?.refused(text)
      events?.add({ at: began, ok: false, error: text, changes: [] })
      log.error({ err: thrown }, 'reload failed; the previous configuration stays active')
    }
  }

  const run = async () => {
    do {
      again = false
      await attempt()
    } while (again)
    running = undefined
  }

  return {
    now() {
      // If a reload is running, run another one afterwards: the files may have changed since it read them.
      if (running) again = true
      else running = run()
      return running
    },
    status: () => ({
      attempts,
      successes,
      last_error: lastError?.text ?? null,
      last_error_at: lastError?.at ?? null,
      last_success_at: lastSuccessAt,
      history: [...history],
    }),
  }
}

/** Throws if a configuration file has disappeared: its rules would be dropped, and its replacement may have none. */
function requireFiles(before: LoadedConfig, after: LoadedConfig): void {
  const gone = before.files.find(({ path }) => !after.files.some((file) => file.path === path) && !existsSync(path))
  if (gone) throw new Error(`${gone.path} is missing; restore it (with {} in it for the defaults), or restart`)
}

/** A reload attempt, as shown in the dashboard. */
export interface ReloadOutcome {
  readonly at: number
  readonly ok: boolean
  /** The error message; null if the reload succeeded. */
  readonly error: string | null
  /** Sentences such as `server memory added`. */
  readonly changes: readonly string[]
}

export interface ReloadHistory {
  /** The latest reload attempts, newest first. */
  readonly events: readonly ReloadOutcome[]
  add(event: ReloadOutcome): void
  onEvent(listener: (event: ReloadOutcome) => void): Disposable
}

const maxEvents = 50

export function createReloadHistory(max = maxEvents): ReloadHistory {
  const { on, emit } = createListeners<[ReloadOutcome]>()
  let events: readonly ReloadOutcome[] = []
  return {
    get events() {
      return events
    },
    add(event) {
      events = [event, ...events].slice(0, max)
      emit(event)
    },
    onEvent: on,
  }
}

export function createListeners<Event extends readonly unknown[]>() {
  const listeners = new Set<(...event: Event) => void>()
  return {
    emit(...event: Event) {
      for (const listener of listeners) listener(...event)
    },
    on: (listener: (...event: Event) => void): Disposable => listen(listeners, listener),
  }
}

/** Records starts, stops and reloads in the audit log, each with a hash of the configuration (F11). */
interface ConfigAudit {
  started(config: Config): void
  applied(config: Config, difference: ConfigDifference): void
  refused(error: string): void
  stopped(config: Config): Promise<void>
}

/** Hashes are keyed with `secret`, because passwords in the configuration could be guessed from a plain hash. */
export function createConfigAudit(audit: Audit, secret: string, redact: (text: string) => string): ConfigAudit {
  const hashOf = (config: Config) => createHmac('sha256', secret).update(JSON.stringify(config, sorted)).digest('hex')

  const write = (operation: string, args: Record<string, unknown>, error?: string): Promise<void> | undefined => {
    const principal = `os:${osUser()}`
    const subject = { call: randomUUID(), agent: '(none)', principal, operation, write: false }
    const how =
      error === undefined
        ? ({ decision: 'ALLOW', is_error: false } as const)
        : ({ decision: 'ERROR', reason: 'configuration_invalid', detail: redact(error), is_error: true } as const)
    try {
      audit.begin({ ...subject, arguments: args })?.catch(() => {})
      return audit.end({ ...subject, ...how, latency_ms: 0 })?.catch(() => {})
    } catch {
      // Ignore audit log failures: the audit log reports them itself, and they must not stop a reload.
      return undefined
    }
  }

  return {
    started: (config) => void write('gateway_start', { configuration: hashOf(config) }),
    applied: (config, { servers, sections, atNextStart }) =>
      void write('reload', { configuration: hashOf(config), sections, servers, atNextStart }),
    refused: (error) => void write('reload', {}, error),
    async stopped(config) {
      await write('gateway_stop', { configuration: hashOf(config) })
    },
  }
}

/** Sorts the keys of objects, so that equal configurations have equal hashes. */
const sorted = (_: string, value: unknown): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))

/** The generations in use. A call finishes in the generation in which it started. */
export interface Generations<G> extends AsyncDisposable {
  /** The generation in which new calls run. */
  readonly current: G
  /** Generations that have not been disposed of yet, the current one first. */
  readonly alive: readonly G[]
  /** Runs work in the current generation, which is not disposed of until the work has finished. */
  run<T>(work: (generation: G) => Promise<T>): Promise<T>
  replace(next: G): void
}

interface Slot<G> {
  readonly generation: G
  running: number
  /** Whether the generation has been replaced and its grace period is over. */
  old: boolean
}

/** How long a replaced generation stays open for calls that have looked up an entry in it but have not started yet. */
const graceMs = 1_000

/** Manages generations. A replaced one is disposed of when its last call has finished, and then nothing refers to it. */
export function createGenerations<G>({
  first,
  dispose,
  clock,
}: {
  readonly first: G
  /** Called once for each generation, after it has been removed from `alive`. */
  dispose(generation: G): Promise<void>
  readonly clock: Clock
}): Generations<G> {
  let current: Slot<G> = { generation: first, running: 0, old: false }
  let slots = [current]
  const ending = new Set<Promise<void>>()
  const timers = new Set<Disposable>()

  const end = (slot: Slot<G>) => {
    slots = slots.filter((other) => other !== slot)
    const done = dispose(slot.generation).finally(() => ending.delete(done))
    ending.add(done)
  }

  return {
    get current() {
      return current.generation
    },
    get alive() {
      return slots.map(({ generation }) => generation)
    },
    async run(work) {
      const slot = current
      slot.running++
      try {
        return await work(slot.generation)
      } finally {
        slot.running--
        if (slot.old && slot.running === 0 && slots.includes(slot)) end(slot)
      }
    },
    replace(next) {
      const before = current
      current = { generation: next, running: 0, old: false }
      slots = [current, ...slots]
      const timer = clock.after(graceMs, () => {
        timers.delete(timer)
        before.old = true
        if (before.running === 0) end(before)
      })
      timers.add(timer)
    },
    async [Symbol.asyncDispose]() {
      for (const timer of timers) timer[Symbol.dispose]()
      for (const slot of slots) end(slot)
      await Promise.all(ending)
    },
  }
}
