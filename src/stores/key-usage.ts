import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Timer } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { parseJson } from '../json/parse-json.ts'
import { lockFile, writeAtomic } from '../lib/files.ts'
import { isRecord } from '../lib/is-record.ts'

/** When each key was last used, in milliseconds since the epoch. */
export interface LastUses {
  of(id: string): number | undefined
  /** The last use of a key's secret before its last rotation. */
  ofPrevious(id: string): number | undefined
}

export interface KeyUsage extends AsyncDisposable {
  note(id: string, previous?: boolean): void
  /** The uses of all processes that share the state folder; those of other processes may be a minute old. */
  lastUses(): LastUses
}

/** Times are written at most this often. */
const writeEveryMs = 60_000
/** Maximum number of times in the file. The oldest are dropped. */
const maxTimes = 10_000

const fileIn = (folder: string): string => join(folder, 'key-usage.json')

/** A name for a key's previous secret. Ids of stored keys cannot contain a space. */
const previousName = (id: string): string => `${id} previous`

/**
 * Remembers when keys were used: in memory for each process, and in a file in the state folder that processes share.
 * A failure to write it is logged, and never fails a request.
 */
export function createKeyUsage(options: { folder: string; clock: Clock; log: Log }): KeyUsage {
  const { folder, clock, log } = options
  let unwritten = new Map<string, number>()
  let timer: Timer | undefined
  let writing: Promise<void> = Promise.resolve()

  const write = async (): Promise<void> => {
    timer = undefined
    const times = unwritten
    if (times.size === 0) return
    unwritten = new Map()
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await using _lock = await lockFile(`${fileIn(folder)}.lock`)
      const all = [...latest(readTimes(folder), times)].sort(([, a], [, b]) => b - a).slice(0, maxTimes)
      await writeAtomic(fileIn(folder), `${JSON.stringify(Object.fromEntries(all))}\n`)
    } catch (error) {
      unwritten = latest(times, unwritten)
      log.warn({ err: error, file: fileIn(folder) }, 'could not record when API keys were used')
    }
  }

  return {
    note(id, previous) {
      unwritten.set(previous ? previousName(id) : id, clock.now())
      timer ??= clock.after(writeEveryMs, () => {
        writing = write()
      })
    },
    lastUses: () => usesIn(latest(readTimes(folder), unwritten)),
    async [Symbol.asyncDispose]() {
      timer?.[Symbol.dispose]()
      await writing
      await write()
    },
  }
}

/** The times in the file, for programs that do not use keys themselves. */
export const readLastUses = (folder: string): LastUses => usesIn(readTimes(folder))

const usesIn = (times: ReadonlyMap<string, number>): LastUses => ({
  of: (id) => times.get(id),
  ofPrevious: (id) => times.get(previousName(id)),
})

/** Reads the file. A damaged one counts as empty, because the times are only shown. */
function readTimes(folder: string): Map<string, number> {
  const times = new Map<string, number>()
  try {
    const content = parseJson(readFileSync(fileIn(folder), 'utf8'))
    if (!isRecord(content)) return times
    for (const [name, time] of Object.entries(content)) if (typeof time === 'number') times.set(name, time)
  } catch {
    // There is no file yet.
  }
  return times
}

function latest(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): Map<string, number> {
  const all = new Map(one)
  for (const [name, time] of other) all.set(name, Math.max(time, all.get(name) ?? 0))
  return all
}
