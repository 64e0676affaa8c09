import { existsSync } from 'node:fs'
import type { LoadedConfig } from '../config/load.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { type Difference, differenceOf, isEmpty, untilNextStart } from './difference.ts'
import type { ReloadHistory } from './history.ts'
import type { ConfigurationRecord } from './record.ts'
import { changesInWords, type MayTell } from './words.ts'

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

const maxKept = 20

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
    history.length = Math.min(history.length, maxKept)
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
