import { type FSWatcher, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../core/clock.ts'

/** News comes in bursts: this long after it the files are looked at. */
const soonMs = 20

/** Files are written in several steps: what has stayed the same for this long is taken for whole. */
const quietMs = 100

/** For folders that are not there yet, and for file systems that tell nothing. */
const lookMs = 2_000

/** Files that are watched. */
interface FileWatcher extends Disposable {
  /** Watches these from now on, and no others. */
  follow(places: readonly string[]): void
}

/**
 * Tells when one of these files has come, gone or changed. Folders are watched rather than files: editors replace
 * files, and mounted configurations swap whole folders behind a link. Any news from there leads to a look at the files.
 */
export function watchFiles(first: readonly string[], clock: Clock, changed: () => void): FileWatcher {
  let places = first
  const watchers = new Map<string, FSWatcher>()
  /** The state that was told last, and the one that was seen last. */
  let told = places.map(markOfFile)
  let seen = told
  let pending: Disposable | undefined
  let over = false

  const look = () => {
    pending = undefined
    watchFolders()
    const now = places.map(markOfFile)
    const whole = same(now, seen)
    seen = now
    if (same(now, told)) return
    if (!whole) {
      pending = clock.after(quietMs, look)
      return
    }
    told = now
    changed()
  }

  const touch = () => {
    if (!over) pending ??= clock.after(soonMs, look)
  }

  const watchFolders = () => {
    for (const folder of new Set(places.map((path) => dirname(path)))) {
      if (watchers.has(folder)) continue
      try {
        const watcher = watch(folder, { persistent: false }, touch)
        watcher.on('error', () => {
          watcher.close()
          watchers.delete(folder)
        })
        watchers.set(folder, watcher)
      } catch {
        // It is not there: the next look tries again.
      }
    }
  }

  const lookNowAndThen = () => {
    if (!same(places.map(markOfFile), told)) touch()
    timer = clock.after(lookMs, lookNowAndThen)
  }

  watchFolders()
  let timer = clock.after(lookMs, lookNowAndThen)
  return {
    follow(next) {
      if (same(next, places)) return
      // What was known stays as it was known, so that no change is missed; what is new was read a moment ago.
      const marks = (known: readonly string[]) => next.map((path) => known[places.indexOf(path)] ?? markOfFile(path))
      told = marks(told)
      seen = marks(seen)
      places = next
      const folders = new Set(places.map((path) => dirname(path)))
      for (const [folder, watcher] of watchers) {
        if (folders.has(folder)) continue
        watcher.close()
        watchers.delete(folder)
      }
      watchFolders()
      touch()
    },
    [Symbol.dispose]() {
      over = true
      pending?.[Symbol.dispose]()
      timer[Symbol.dispose]()
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

const same = (one: readonly string[], other: readonly string[]): boolean => one.join('\n') === other.join('\n')

/** All of a file that changes when its content does. */
function markOfFile(path: string): string {
  try {
    const facts = statSync(path, { bigint: true, throwIfNoEntry: false })
    return facts ? `${facts.ino} ${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}` : ''
  } catch (thrown) {
    return String((thrown as NodeJS.ErrnoException).code)
  }
}
