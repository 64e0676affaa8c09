import { type FSWatcher, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../core/clock.ts'

/** Delay between a change event and the file check, because events come in bursts. */
const soonMs = 20

/** How long files must stay unchanged before a change is reported: programs often write a file in several steps. */
const quietMs = 100

/** Polling interval, for folders that do not exist yet and for file systems without change events. */
const lookMs = 2_000

/**
 * Calls `changed` when a file appears, disappears or changes. Watches folders instead of files, because editors replace
 * files, and mounted configurations swap whole folders behind a link. Any event triggers a check of the files.
 */
export function watchFiles(first: readonly string[], clock: Clock, changed: () => void) {
  let places = first
  const watchers = new Map<string, FSWatcher>()
  /** `reported` is the state at the last call to `changed`; `seen` is the state at the last check. */
  let reported = places.map(markOfFile)
  let seen = reported
  let pending: Disposable | undefined
  let over = false

  const look = () => {
    pending = undefined
    watchFolders()
    const now = places.map(markOfFile)
    const whole = same(now, seen)
    seen = now
    if (same(now, reported)) return
    if (!whole) {
      pending = clock.after(quietMs, look)
      return
    }
    reported = now
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
        // The folder does not exist; the next check tries again.
      }
    }
  }

  const lookNowAndThen = () => {
    if (!same(places.map(markOfFile), reported)) touch()
    timer = clock.after(lookMs, lookNowAndThen)
  }

  watchFolders()
  let timer = clock.after(lookMs, lookNowAndThen)
  return {
    /** Replaces the list of watched files. */
    follow(next: readonly string[]): void {
      if (same(next, places)) return
      // Keep the marks of files that were already being watched, so that no change is missed. New files have just been
      // read, so their current marks are correct.
      const marks = (known: readonly string[]) => next.map((path) => known[places.indexOf(path)] ?? markOfFile(path))
      reported = marks(reported)
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
    [Symbol.dispose](): void {
      over = true
      pending?.[Symbol.dispose]()
      timer[Symbol.dispose]()
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

const same = (one: readonly string[], other: readonly string[]): boolean => one.join('\n') === other.join('\n')

/** Returns a mark for a file's content, made from metadata that changes with the content. */
function markOfFile(path: string): string {
  try {
    const facts = statSync(path, { bigint: true, throwIfNoEntry: false })
    return facts ? `${facts.ino} ${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}` : ''
  } catch (thrown) {
    return String((thrown as NodeJS.ErrnoException).code)
  }
}
