import { lstatSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import type { Log } from '../../core/log.ts'
import { writeAtomic } from '../../lib/atomic-write.ts'
import { lockFile } from '../../lib/file-lock.ts'
import { parseJson } from '../../lib/parse-json.ts'

const dismissal = z.object({ id: z.string(), revision: z.string(), by: z.string(), at: z.number() })
const content = z.object({ version: z.literal(1), dismissed: z.array(dismissal) })
type Dismissal = Readonly<z.output<typeof dismissal>>

/** Which inbox items an operator has hidden, in a file that all processes with the same state folder share. */
export interface Dismissals {
  has(id: string, revision: string): boolean
  add(dismissed: Dismissal): Promise<void>
  /** Drops the dismissal of an item that has ended. */
  forget(id: string): void
}

/** Max dismissals kept; the oldest are dropped. */
const maxDismissed = 500
const maxBytes = 1_048_576

export function openDismissals(folder: string, log: Log): Dismissals {
  const path = join(folder, 'inbox.json')
  let dismissed = new Map<string, Dismissal>()
  let mark: string | undefined

  /** Reads the file if it has changed. A damaged file counts as empty: then everything is shown. */
  const look = () => {
    const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    const now = found && `${found.ino} ${found.size} ${found.mtimeNs}`
    if (now === mark) return
    mark = now
    dismissed = new Map()
    if (!found?.isFile() || found.size > maxBytes) return
    const parsed = content.safeParse(parseJson(readFileSync(path, 'utf8')))
    if (!parsed.success) log.warn({ path }, 'the list of dismissed inbox items is damaged; showing all items')
    dismissed = new Map((parsed.data?.dismissed ?? []).map((one) => [one.id, one]))
  }

  const change = async (update: (all: Map<string, Dismissal>) => void): Promise<void> => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await using _lock = await lockFile(`${path}.lock`)
    look()
    update(dismissed)
    const kept = [...dismissed.values()].sort((a, b) => a.at - b.at).slice(-maxDismissed)
    await writeAtomic(path, `${JSON.stringify({ version: 1, dismissed: kept })}\n`)
  }

  return {
    has(id, revision) {
      look()
      return dismissed.get(id)?.revision === revision
    },
    add: (one) => change((all) => void all.set(one.id, one)),
    forget(id) {
      look()
      if (!dismissed.delete(id)) return
      change((all) => void all.delete(id)).catch((cause: unknown) =>
        log.warn({ path, cause }, 'could not save the list of dismissed inbox items'),
      )
    },
  }
}
