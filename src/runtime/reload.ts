import { createHmac, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Audit } from '../core/audit.ts'
import type { Clock } from '../core/clock.ts'
import { osUser } from '../core/home.ts'
import type { Log } from '../core/log.ts'
import {
  type ConfigDifference,
  compareConfigs,
  describeChanges,
  isEmpty,
  keepFixedSettings,
  type MayShow,
} from './config-difference.ts'

/** One attempt to put another configuration into force. */
export interface ReloadAttempt {
  readonly at: string
  /** Why nothing has changed; none where it has. */
  readonly error?: string
  readonly difference?: ConfigDifference
}

export interface ReloadStatus {
  readonly attempts: number
  readonly successes: number
  /** It stays after a success: the times tell which came last. */
  readonly last_error: string | null
  readonly last_error_at: string | null
  readonly last_success_at: string | null
  /** The latest attempts, newest first. */
  readonly history: readonly ReloadAttempt[]
}

export interface Reload {
  /** Reads the configuration again and puts it into force. Never rejects: the status tells how it went. */
  now(): Promise<void>
  status(): ReloadStatus
}

export interface ReloadOptions {
  /** The configuration in force. */
  current(): LoadedConfig
  /** Reads and checks the whole configuration. */
  load(): Promise<LoadedConfig>
  /** Puts it into force, whole or not at all. */
  apply(loaded: LoadedConfig): Promise<void>
  /** Where it is told what has changed, and of which values; nowhere, if absent. */
  readonly history?: ReloadHistory
  readonly mayShow?: MayShow
  /** Where each attempt is written down. */
  readonly record?: Pick<ConfigAudit, 'applied' | 'refused'>
  readonly clock: Clock
  readonly log: Log
}

const maxAttempts = 20

/** Takes another configuration over, one at a time; whatever is wrong with it leaves the old one in force (G8). */
export function createReload(options: ReloadOptions): Reload {
  const { current, load, apply, history: told, mayShow: mayTell = () => false, clock, log } = options
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
      const changes = told ? describeChanges(before.config, loaded.config, mayTell) : []
      const difference = compareConfigs(before.config, loaded.config)
      const config = keepFixedSettings(before.config, loaded.config)
      await apply({ ...loaded, config })
      successes++
      lastSuccessAt = at
      keep({ at, difference })
      options.record?.applied(config, difference)
      told?.add({ at: began, ok: true, error: null, changes })
      if (!isEmpty(difference)) log.info({ ...difference }, 'The configuration has changed and is in force')
      for (const key of difference.atNextStart)
        log.warn({ key }, `${key} has changed and counts from the next start on`)
    } catch (thrown) {
      const text = thrown instanceof Error ? thrown.message : String(thrown)
      lastError = { text, at }
      keep({ at, error: text })
      options.record?.refused(text)
      told?.add({ at: began, ok: false, error: text, changes: [] })
      log.error({ error: text }, 'The changed configuration is not valid; the one before stays in force')
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
      // What changes while one is being read is read after it.
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

/** A file that went away takes its rules with it, and whatever is found in its place may have none. */
function requireFiles(before: LoadedConfig, after: LoadedConfig): void {
  const gone = before.files.find(({ path }) => !after.files.some((file) => file.path === path) && !existsSync(path))
  if (gone) throw new Error(`${gone.path} is gone; put it back (with {} in it for the defaults), or start again`)
}

/** One attempt to put another configuration into force, as people read about it. */
export interface ReloadOutcome {
  readonly at: number
  readonly ok: boolean
  /** Why nothing has changed; null where it has. */
  readonly error: string | null
  /** What is otherwise than before, in words. */
  readonly changes: readonly string[]
}

/** The latest attempts, for whoever wants to know what has happened to the configuration and when. */
export interface ReloadHistory {
  /** Newest first. */
  readonly events: readonly ReloadOutcome[]
  add(event: ReloadOutcome): void
  onEvent(listener: (event: ReloadOutcome) => void): Disposable
}

const maxEvents = 50

export function createReloadHistory(most = maxEvents): ReloadHistory {
  const listeners = new Set<(event: ReloadOutcome) => void>()
  let events: readonly ReloadOutcome[] = []
  return {
    get events() {
      return events
    },
    add(event) {
      events = [event, ...events].slice(0, most)
      for (const listener of listeners) listener(event)
    },
    onEvent(listener) {
      // Wrapped, so that one function registered twice is two listeners.
      const own = (event: ReloadOutcome) => listener(event)
      listeners.add(own)
      return { [Symbol.dispose]: () => void listeners.delete(own) }
    },
  }
}

/** Writes down what happens to the configuration (F11): which one a gateway starts and stops with, and each reload. */
interface ConfigAudit {
  started(config: Config): void
  applied(config: Config, difference: ConfigDifference): void
  refused(error: string): void
  stopped(config: Config): Promise<void>
}

/**
 * `secret` keys the hash of a configuration: it holds passwords, and a plain hash would let anybody who reads the log
 * try them out.
 */
export function createConfigAudit(audit: Audit, secret: string, redact: (text: string) => string): ConfigAudit {
  const hashOf = (config: Config) => createHmac('sha256', secret).update(JSON.stringify(config, sorted)).digest('hex')

  const write = (operation: string, given: Record<string, unknown>, error?: string): Promise<void> | undefined => {
    const subject = {
      call: randomUUID(),
      agent: '(none)',
      principal: `os:${osUser()}`,
      operation,
      write: false,
    }
    const how =
      error === undefined
        ? ({ decision: 'ALLOW', is_error: false } as const)
        : ({ decision: 'ERROR', reason: 'configuration_invalid', detail: redact(error), is_error: true } as const)
    try {
      audit.begin({ ...subject, arguments: given })?.catch(() => {})
      return audit.end({ ...subject, ...how, latency_ms: 0 })?.catch(() => {})
    } catch {
      // Whoever writes the records tells the log that it cannot; a configuration is in force all the same.
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

/** The order of keys changes with reloads and means nothing: equal configurations have equal hashes. */
const sorted = (_: string, value: unknown): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Worlds that follow one another: what runs in one ends there, whatever comes after it. */
export interface Generations<G> extends AsyncDisposable {
  /** The one that whatever begins now begins in. */
  readonly current: G
  /** All that are not over: the present one first. */
  readonly alive: readonly G[]
  /** Does something in the present world, which is not ended before that is done. */
  run<T>(work: (generation: G) => Promise<T>): Promise<T>
  /** Another one is the present one from now on. */
  replace(next: G): void
}

interface Slot<G> {
  readonly generation: G
  running: number
  /** No longer the present one, and since long enough. */
  old: boolean
}

/** What has been looked up in a world but not begun yet needs a moment more. */
const graceMs = 1_000

/** Keeps a world until nothing runs in it any more, and ends it then. */
export function createGenerations<G>(options: {
  readonly first: G
  /** Called once for each world, when it is no longer among the living ones. */
  end(generation: G): Promise<void>
  readonly clock: Clock
}): Generations<G> {
  let current: Slot<G> = { generation: options.first, running: 0, old: false }
  let slots = [current]
  const ending = new Set<Promise<void>>()
  const timers = new Set<Disposable>()

  const end = (slot: Slot<G>) => {
    slots = slots.filter((other) => other !== slot)
    const done = options.end(slot.generation).finally(() => ending.delete(done))
    ending.add(done)
  }

  const leave = (slot: Slot<G>) => {
    slot.running--
    if (slot.old && slot.running === 0 && slots.includes(slot)) end(slot)
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
        leave(slot)
      }
    },
    replace(next) {
      const before = current
      current = { generation: next, running: 0, old: false }
      slots = [current, ...slots]
      const timer = options.clock.after(graceMs, () => {
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
