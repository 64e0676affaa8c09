import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock, Timer } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { parseJson } from '../json/parse-json.ts'
import { lockFile, makeFolder, writeAtomic } from '../lib/files.ts'
import { asRecord } from '../lib/is-record.ts'

/** When each key was last used, in milliseconds since the epoch, by `usageName`. */
export type LastUses = ReadonlyMap<string, number>

/** A key, or its previous secret. Ids of stored keys cannot contain a space. */
export const usageName = (id: string, previous = false): string => (previous ? `${id} previous` : id)

const usageWriteMs = 60_000
/** Maximum number of times in the file. The oldest are dropped. */
const maxTimes = 10_000

const fileIn = (folder: string): string => join(folder, 'key-usage.json')

interface KeyUsageOptions {
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
}

/**
 * Remembers when keys were used: in memory for each process, and in a file in the state folder that processes share.
 * A failure to write it is logged, and never fails a request.
 */
export class KeyUsage implements AsyncDisposable {
  readonly #options: KeyUsageOptions
  #unwritten = new Map<string, number>()
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(options: KeyUsageOptions) {
    this.#options = options
  }

  note(id: string, previous?: boolean): void {
    const { clock } = this.#options
    this.#unwritten.set(usageName(id, previous), clock.now())
    this.#timer ??= clock.after(usageWriteMs, () => {
      this.#writing = this.#write()
    })
  }

  /** The uses of all processes that share the state folder; those of other processes may be a minute old. */
  lastUses(): LastUses {
    return latestOf(readLastUses(this.#options.folder), this.#unwritten)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer?.[Symbol.dispose]()
    await this.#writing
    await this.#write()
  }

  async #write(): Promise<void> {
    this.#timer = undefined
    const times = this.#unwritten
    if (times.size === 0) return
    this.#unwritten = new Map()
    const { folder, log } = this.#options
    const file = fileIn(folder)
    try {
      makeFolder(folder)
      await using _lock = await lockFile(`${file}.lock`)
      const all = [...latestOf(readLastUses(folder), times)].sort(([, a], [, b]) => b - a).slice(0, maxTimes)
      await writeAtomic(file, `${JSON.stringify(Object.fromEntries(all))}\n`)
    } catch (error) {
      this.#unwritten = latestOf(times, this.#unwritten)
      log.warn({ err: error, file }, 'could not record when API keys were used')
    }
  }
}

/** The times in the file. A damaged one counts as empty, because the times are only shown. */
export function readLastUses(folder: string): LastUses {
  try {
    const content = parseJson(readFileSync(fileIn(folder), 'utf8'))
    return new Map(
      Object.entries(asRecord(content)).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
    )
  } catch {
    // There is no file yet.
    return new Map()
  }
}

function latestOf(one: LastUses, other: LastUses): Map<string, number> {
  const all = new Map(one)
  for (const [name, time] of other) all.set(name, Math.max(time, all.get(name) ?? 0))
  return all
}
