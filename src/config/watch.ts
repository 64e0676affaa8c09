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
export class FileWatch implements Disposable {
  readonly #clock: Clock
  readonly #changed: () => void
  readonly #watchers = new Map<string, { readonly watcher: FSWatcher; readonly identity: string | undefined }>()
  readonly #lost = new Set<string>()
  #files: readonly string[]
  /** The state at the last call to `changed` or `reading`. */
  #reported: readonly string[]
  /** The state at the last check. */
  #seen: readonly string[]
  #pending: Disposable | undefined
  #timer: Disposable
  #isOver = false

  constructor(files: readonly string[], clock: Clock, changed: () => void) {
    this.#clock = clock
    this.#changed = changed
    this.#files = files
    this.#reported = files.map(markOfFile)
    this.#seen = this.#reported
    this.#watchFolders()
    this.#timer = clock.after(lookMs, this.#lookNowAndThen)
  }

  /** To be called before the files are read: only later changes are reported. */
  reading(): void {
    this.#reported = this.#files.map(markOfFile)
  }

  /** Replaces the list of watched files. */
  follow(next: readonly string[]): void {
    if (same(next, this.#files)) return
    // Keep the marks of files that were already being watched, so that no change is missed. New files have just been
    // read, so their current marks are correct.
    const marks = (known: readonly string[]) => next.map((path) => known[this.#files.indexOf(path)] ?? markOfFile(path))
    this.#reported = marks(this.#reported)
    this.#seen = marks(this.#seen)
    this.#files = next
    this.#watchFolders()
    this.#touch()
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#pending?.[Symbol.dispose]()
    this.#timer[Symbol.dispose]()
    for (const { watcher } of this.#watchers.values()) watcher.close()
  }

  readonly #look = (): void => {
    this.#pending = undefined
    this.#watchFolders()
    this.#compare()
    if (this.#lost.size > 0 && !this.#isOver) this.#pending ??= this.#clock.after(lostMs, this.#look)
  }

  readonly #lookNowAndThen = (): void => {
    if (!same(this.#files.map(markOfFile), this.#reported)) this.#touch()
    this.#timer = this.#clock.after(lookMs, this.#lookNowAndThen)
  }

  readonly #touch = (): void => {
    if (!this.#isOver) this.#pending ??= this.#clock.after(debounceMs, this.#look)
  }

  #compare(): void {
    const now = this.#files.map(markOfFile)
    const isQuiet = same(now, this.#seen)
    this.#seen = now
    if (same(now, this.#reported)) return
    if (!isQuiet) {
      this.#pending = this.#clock.after(quietMs, this.#look)
      return
    }
    this.#reported = now
    this.#changed()
  }

  #watchFolders(): void {
    const wanted = new Set(this.#files.flatMap(foldersOf))
    for (const [folder, { watcher, identity }] of this.#watchers) {
      if (wanted.has(folder) && identityOf(folder) === identity) continue
      // A watcher stays with a folder that was moved or removed; it does not notice another one in its place.
      watcher.close()
      this.#watchers.delete(folder)
      this.#lost.add(folder)
    }
    for (const folder of wanted) if (!this.#watchers.has(folder)) this.#watchFolder(folder)
    for (const folder of this.#lost) if (this.#watchers.has(folder) || !wanted.has(folder)) this.#lost.delete(folder)
  }

  #watchFolder(folder: string): void {
    try {
      const identity = identityOf(folder)
      const watcher = watch(folder, { persistent: false }, this.#touch)
      watcher.on('error', () => {
        watcher.close()
        this.#watchers.delete(folder)
      })
      this.#watchers.set(folder, { watcher, identity })
    } catch {
      // The folder does not exist; the next check tries again.
    }
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
