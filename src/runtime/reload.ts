import { existsSync } from 'node:fs'
import type { LoadedConfig } from '../config/load.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { createListeners } from '../lib/listen.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import type { ConfigAudit } from './audit-events.ts'
import { type ConfigDifference, compareConfigs } from './config-difference.ts'

export interface ReloadAttempt {
  readonly at: number
  readonly ok: boolean
  /** The error message; null if the reload succeeded. */
  readonly error: string | null
  /** Sentences such as `server memory added`. */
  readonly changes: readonly string[]
  readonly difference?: ConfigDifference
}

/** The state of reloads as `get_gateway_status` and the library report it. */
export interface ReloadStatus {
  readonly attempts: number
  readonly successes: number
  /** The last error. A later success does not clear it, so compare `last_error_at` with `last_success_at`. */
  readonly last_error: string | null
  readonly last_error_at: string | null
  readonly last_success_at: string | null
  /** The latest attempts, newest first. */
  readonly history: readonly ReportedAttempt[]
}

interface ReportedAttempt {
  readonly at: string
  /** The error message; absent if the reload succeeded. */
  readonly error?: string
  readonly difference?: ConfigDifference
}

const maxKeptAttempts = 50
const maxReported = 20

export class ReloadHistory {
  readonly #max: number
  readonly #listeners = createListeners<[ReloadAttempt]>()
  #attempts: readonly ReloadAttempt[] = []
  #total = 0
  #successes = 0
  #lastError: ReloadAttempt | undefined
  #lastSuccess: ReloadAttempt | undefined

  constructor(max = maxKeptAttempts) {
    this.#max = max
  }

  /** Newest first. */
  get attempts(): readonly ReloadAttempt[] {
    return this.#attempts
  }

  /** Counts an attempt, whose outcome is added when it ends. */
  begin(): void {
    this.#total++
  }

  add(attempt: ReloadAttempt): void {
    this.#attempts = [attempt, ...this.#attempts].slice(0, this.#max)
    if (attempt.ok) {
      this.#successes++
      this.#lastSuccess = attempt
    } else this.#lastError = attempt
    this.#listeners.emit(attempt)
  }

  onAttempt(listener: (attempt: ReloadAttempt) => void): Disposable {
    return this.#listeners.on(listener)
  }

  status(): ReloadStatus {
    return {
      attempts: this.#total,
      successes: this.#successes,
      last_error: this.#lastError?.error ?? null,
      last_error_at: attemptTime(this.#lastError),
      last_success_at: attemptTime(this.#lastSuccess),
      history: this.#attempts.slice(0, maxReported).map((attempt) => reportOf(attempt)),
    }
  }
}

/** Always the same object for an attempt, so that two states of the history can be compared. */
const reportOf = memoizeByObject(
  ({ at, error, difference }: ReloadAttempt): ReportedAttempt => ({
    at: new Date(at).toISOString(),
    ...(error !== null && { error }),
    ...(difference && { difference }),
  }),
)

const attemptTime = (attempt: ReloadAttempt | undefined): string | null =>
  attempt ? new Date(attempt.at).toISOString() : null

interface ReloadOptions {
  current(): LoadedConfig
  load(): Promise<LoadedConfig>
  /** Applies a configuration completely, or throws and changes nothing. */
  apply(loaded: LoadedConfig): Promise<void>
  readonly history: ReloadHistory
  readonly audit?: Pick<ConfigAudit, 'applied' | 'refused'>
  readonly clock: Clock
  readonly log: Log
}

/** Applies changed configurations, one at a time. If one is invalid, the current configuration stays active (G8). */
export class Reload {
  readonly history: ReloadHistory
  readonly #options: ReloadOptions
  #running: Promise<void> | undefined
  #again = false

  constructor(options: ReloadOptions) {
    this.history = options.history
    this.#options = options
  }

  /** Loads and applies the configuration. Never rejects; the outcome is in the history. */
  now(): Promise<void> {
    // If a reload is running, run another one afterwards: the files may have changed since it read them.
    if (this.#running) this.#again = true
    else this.#running = this.#run()
    return this.#running
  }

  async #run(): Promise<void> {
    do {
      this.#again = false
      await this.#attempt()
    } while (this.#again)
    this.#running = undefined
  }

  async #attempt(): Promise<void> {
    const { current, load, apply, history, audit, clock, log } = this.#options
    const at = clock.now()
    history.begin()
    try {
      const loaded = await load()
      const before = current()
      requireFiles(before, loaded)
      const { difference, changes, applicable } = compareConfigs(before.config, loaded.config)
      await apply({ ...loaded, config: applicable })
      audit?.applied(applicable, difference)
      history.add({ at, ok: true, error: null, changes, difference })
      log.info({ ...difference, changes }, 'configuration reloaded')
      for (const key of difference.atNextStart) log.warn({ key }, `${key} has changed; restart to apply it`)
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown.message : String(thrown)
      audit?.refused(error)
      history.add({ at, ok: false, error, changes: [] })
      log.error({ err: thrown }, 'reload failed; the previous configuration stays active')
    }
  }
}

/** Throws if a configuration file has disappeared: its rules would be dropped, and its replacement may have none. */
function requireFiles(before: LoadedConfig, after: LoadedConfig): void {
  const gone = before.files.find(({ path }) => !after.files.some((file) => file.path === path) && !existsSync(path))
  if (gone) throw new Error(`${gone.path} is missing; restore it (with {} in it for the defaults), or restart`)
}
