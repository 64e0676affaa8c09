import { createHmac, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Audit } from '../core/audit.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { osUser } from '../core/os-user.ts'
import {
  changesInWords,
  type Difference,
  differenceOf,
  isEmpty,
  type MayTell,
  untilNextStart,
} from './config-difference.ts'

/** One attempt to put another configuration into force. */
export interface Attempt {
  readonly at: string
  /** Why nothing has changed; none where it has. */
  readonly error?: string
  readonly difference?: Difference
}

export interface ReloadStatus {
  readonly attempts: number
  readonly successes: number
  /** It stays after a success: the times tell which came last. */
  readonly last_error: string | null
  readonly last_error_at: string | null
  readonly last_success_at: string | null
  /** The latest attempts, newest first. */
  readonly history: readonly Attempt[]
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
  readonly mayTell?: MayTell
  /** Where each attempt is written down. */
  readonly record?: Pick<ConfigurationRecord, 'applied' | 'refused'>
  readonly clock: Clock
  readonly log: Log
}

const maxAttempts = 20

/** Takes another configuration over, one at a time; whatever is wrong with it leaves the old one in force (G8). */
export function createReload(options: ReloadOptions): Reload {
  const { current, load, apply, history: told, mayTell = () => false, clock, log } = options
  let attempts = 0
  let successes = 0
  let lastError: { readonly text: string; readonly at: string } | undefined
  let lastSuccessAt: string | null = null
  const history: Attempt[] = []
  let running: Promise<void> | undefined
  let again = false

  const keep = (attempt: Attempt) => {
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
      refuseGone(before, loaded)
      const changes = told ? changesInWords(before.config, loaded.config, mayTell) : []
      const difference = differenceOf(before.config, loaded.config)
      const config = untilNextStart(before.config, loaded.config)
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
function refuseGone(before: LoadedConfig, after: LoadedConfig): void {
  const gone = before.files.find(({ path }) => !after.files.some((file) => file.path === path) && !existsSync(path))
  if (gone) throw new Error(`${gone.path} is gone; put it back (with {} in it for the defaults), or start again`)
}

/** One attempt to put another configuration into force, as people read about it. */
export interface Reloaded {
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
  readonly events: readonly Reloaded[]
  add(event: Reloaded): void
  onEvent(listener: (event: Reloaded) => void): Disposable
}

const maxEvents = 50

export function createHistory(most = maxEvents): ReloadHistory {
  const listeners = new Set<(event: Reloaded) => void>()
  let events: readonly Reloaded[] = []
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
      const own = (event: Reloaded) => listener(event)
      listeners.add(own)
      return { [Symbol.dispose]: () => void listeners.delete(own) }
    },
  }
}

/** Writes down what happens to the configuration (F11): which one a gateway starts and stops with, and each reload. */
interface ConfigurationRecord {
  started(config: Config): void
  applied(config: Config, difference: Difference): void
  refused(error: string): void
  stopped(config: Config): Promise<void>
}

/**
 * `secret` keys the hash of a configuration: it holds passwords, and a plain hash would let anybody who reads the log
 * try them out.
 */
export function recordConfiguration(
  audit: Audit,
  secret: string,
  redact: (text: string) => string,
): ConfigurationRecord {
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
export interface Worlds<World> extends AsyncDisposable {
  /** The one that whatever begins now begins in. */
  readonly present: World
  /** All that are not over: the present one first. */
  readonly living: readonly World[]
  /** Does something in the present world, which is not ended before that is done. */
  within<T>(work: (world: World) => Promise<T>): Promise<T>
  /** Another one is the present one from now on. */
  follow(next: World): void
}

interface Place<World> {
  readonly world: World
  running: number
  /** No longer the present one, and since long enough. */
  old: boolean
}

/** What has been looked up in a world but not begun yet needs a moment more. */
const graceMs = 1_000

/** Keeps a world until nothing runs in it any more, and ends it then. */
export function createWorlds<World>(options: {
  readonly first: World
  /** Called once for each world, when it is no longer among the living ones. */
  end(world: World): Promise<void>
  readonly clock: Clock
}): Worlds<World> {
  let present: Place<World> = { world: options.first, running: 0, old: false }
  let places = [present]
  const ending = new Set<Promise<void>>()
  const timers = new Set<Disposable>()

  const end = (place: Place<World>) => {
    places = places.filter((other) => other !== place)
    const done = options.end(place.world).finally(() => ending.delete(done))
    ending.add(done)
  }

  const leave = (place: Place<World>) => {
    place.running--
    if (place.old && place.running === 0 && places.includes(place)) end(place)
  }

  return {
    get present() {
      return present.world
    },
    get living() {
      return places.map(({ world }) => world)
    },
    async within(work) {
      const place = present
      place.running++
      try {
        return await work(place.world)
      } finally {
        leave(place)
      }
    },
    follow(next) {
      const before = present
      present = { world: next, running: 0, old: false }
      places = [present, ...places]
      const timer = options.clock.after(graceMs, () => {
        timers.delete(timer)
        before.old = true
        if (before.running === 0) end(before)
      })
      timers.add(timer)
    },
    async [Symbol.asyncDispose]() {
      for (const timer of timers) timer[Symbol.dispose]()
      for (const place of places) end(place)
      await Promise.all(ending)
    },
  }
}
