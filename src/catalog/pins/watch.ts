import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Clock } from '../../core/clock.ts'

/** Not every file system tells of changes; the time of the folder does, since each write renames a file in it. */
const everyMs = 500

/** Calls `touched` when somebody may have written into the folder, which need not be there yet. */
export function watchFolder(folder: string, clock: Clock, touched: () => void): Disposable {
  let watcher: FSWatcher | undefined
  let timer: Disposable | undefined
  let last: number | undefined
  let over = false

  const listen = () => {
    try {
      watcher = watch(folder, { persistent: false }, touched)
      watcher.on('error', () => {
        watcher?.close()
        watcher = undefined
      })
    } catch {
      watcher = undefined
    }
  }

  const look = async () => {
    const mtimeMs = await stat(folder).then(
      (found) => found.mtimeMs,
      () => undefined,
    )
    if (over) return
    if (mtimeMs !== undefined && !watcher) listen()
    if (mtimeMs !== last) touched()
    last = mtimeMs
    timer = clock.after(everyMs, () => void look())
  }

  listen()
  timer = clock.after(everyMs, () => void look())
  return {
    [Symbol.dispose]() {
      over = true
      timer?.[Symbol.dispose]()
      watcher?.close()
    },
  }
}
