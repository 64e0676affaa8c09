import { type FSWatcher, realpathSync, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../core/clock.ts'

/** Delay between a change event and the file check, because events come in bursts. */
const debounceMs = 20

/** How long files must stay unchanged before a change is reported: programs often write a file in several steps. */
const quietMs = 100

/** How often to look for a folder that was watched and has disappeared: it may have been moved away to be replaced. */
const lostMs = 250

/** Polling interval, for folders that do not exist yet and for file systems without change events. */
const lookMs = 2_000

/**
 * Calls `changed` when a file appears, disappears or changes. Watches folders instead of files, because editors replace
 * files, and mounted configurations swap whole folders behind a link. For a linked file, also watches the folder of the
 * real one. Any event triggers a check of the files.
 */
export function watchFiles(first: readonly string[], clock: Clock, changed: () => void) {
  let filesToWatch = first
  const watchers = new Map<string, { readonly watcher: FSWatcher; readonly identity: string | undefined }>()
  const lost = new Set<string>()
  /** `reported` is the state at the last call to `changed` or `reading`; `seen` is the state at the last check. */
  let reported = filesToWatch.map(markOfFile)
  let seen = reported
  let pending: Disposable | undefined
  let over = false

  const look = () => {
    pending = undefined
    watchFolders()
    compare()
    if (lost.size > 0 && !over) pending ??= clock.after(lostMs, look)
  }

  const compare = () => {
    const now = filesToWatch.map(markOfFile)
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
    if (!over) pending ??= clock.after(debounceMs, look)
  }

  const watchFolders = () => {
    const wanted = new Set(filesToWatch.flatMap(foldersOf))
    for (const [folder, { watcher, identity }] of watchers) {
      if (wanted.has(folder) && identityOf(folder) === identity) continue
      // A watcher stays with a folder that was moved or removed; it does not notice another one in its place.
      watcher.close()
      watchers.delete(folder)
      lost.add(folder)
    }
    for (const folder of wanted) {
      if (watchers.has(folder)) continue
      try {
        const identity = identityOf(folder)
        const watcher = watch(folder, { persistent: false }, touch)
        watcher.on('error', () => {
          watcher.close()
          watchers.delete(folder)
        })
        watchers.set(folder, { watcher, identity })
      } catch {
        // The folder does not exist; the next check tries again.
      }
    }
    for (const folder of lost) if (watchers.has(folder) || !wanted.has(folder)) lost.delete(folder)
  }

  const lookNowAndThen = () => {
    if (!same(filesToWatch.map(markOfFile), reported)) touch()
    timer = clock.after(lookMs, lookNowAndThen)
  }

  watchFolders()
  let timer = clock.after(lookMs, lookNowAndThen)
  return {
    /** To be called before the files are read: only later changes are reported. */
    reading(): void {
      reported = filesToWatch.map(markOfFile)
    },
    /** Replaces the list of watched files. */
    follow(next: readonly string[]): void {
      if (same(next, filesToWatch)) return
      // Keep the marks of files that were already being watched, so that no change is missed. New files have just been
      // read, so their current marks are correct.
      const marks = (known: readonly string[]) =>
        next.map((path) => known[filesToWatch.indexOf(path)] ?? markOfFile(path))
      reported = marks(reported)
      seen = marks(seen)
      filesToWatch = next
      watchFolders()
      touch()
    },
    [Symbol.dispose](): void {
      over = true
      pending?.[Symbol.dispose]()
      timer[Symbol.dispose]()
      for (const { watcher } of watchers.values()) watcher.close()
    },
  }
}

const same = (one: readonly string[], other: readonly string[]): boolean => one.join('\n') === other.join('\n')

/** The folder of a path and, if the path is a link, the folder of the real file. */
function foldersOf(path: string): string[] {
  try {
    return [dirname(path), dirname(realpathSync(path))]
  } catch {
    return [dirname(path)]
  }
}

/** Identifies the folder that has this path now; undefined if there is none that can be seen. */
function identityOf(folder: string): string | undefined {
  try {
    const { dev, ino } = statSync(folder, { bigint: true })
    return `${dev} ${ino}`
  } catch {
    return undefined
  }
}

/** Returns a mark for a file's content, made from metadata that changes with the content. */
function markOfFile(path: string): string {
  try {
    const facts = statSync(path, { bigint: true, throwIfNoEntry: false })
    return facts ? `${facts.ino} ${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}` : ''
  } catch (thrown) {
    return String((thrown as NodeJS.ErrnoException).code)
  }
}
