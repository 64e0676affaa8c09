import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ShownLine } from '../../catalog/pins/definition.ts'
import { parseJson } from '../../json/parse-json.ts'
import { writeAtomic } from '../../lib/files.ts'

/** A change of the configuration file that can be undone. */
export interface RecordedEdit {
  readonly id: string
  readonly at: number
  /** Who changed it, such as `key:abc` or `os:anna`. */
  readonly by: string
  readonly file: string
  /** What was changed, such as `mcpServers.files`. */
  readonly paths: readonly string[]
  readonly undoes?: string | undefined
  readonly diff: readonly ShownLine[]
  readonly before: string | null
  readonly after: string
}

const maxEdits = 100
const maxHistoryBytes = 16 * 1024 * 1024

/**
 * The latest edits, kept in the state folder and shared by all processes that use it. A record contains the old and the
 * new content, which may contain secrets, so only the owner can read it.
 */
export function createEditHistory(state: string) {
  const folder = join(state, 'config-history')
  const fileOf = (id: string): string => join(folder, `${id}.json`)
  const newestIds = async (): Promise<string[]> => {
    const found = await readdir(folder).catch(() => [])
    return found
      .flatMap((name) => /^(\d+-[0-9a-f]+)\.json$/.exec(name)?.[1] ?? [])
      .sort()
      .reverse()
  }
  const read = async (id: string): Promise<RecordedEdit | undefined> => {
    if (!/^\d+-[0-9a-f]+$/.test(id)) return undefined
    const text = await readFile(fileOf(id), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : (parseJson(text) as RecordedEdit | undefined)
  }

  const trim = async (): Promise<void> => {
    let bytes = 0
    for (const [index, id] of (await newestIds()).entries()) {
      bytes += (await stat(fileOf(id)).catch(() => undefined))?.size ?? 0
      if (index > 0 && (index >= maxEdits || bytes > maxHistoryBytes)) await rm(fileOf(id), { force: true })
    }
  }

  return {
    async add(edit: Omit<RecordedEdit, 'id'>): Promise<RecordedEdit> {
      const id = `${String(edit.at).padStart(14, '0')}-${randomBytes(4).toString('hex')}`
      const recorded = { id, ...edit }
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeAtomic(fileOf(id), JSON.stringify(recorded))
      await trim()
      return recorded
    },
    /** Removes the record of an edit that was not made. */
    remove: (id: string): Promise<void> => rm(fileOf(id), { force: true }),
    find: read,
    /** Newest first. */
    async list(): Promise<RecordedEdit[]> {
      const all = await Promise.all((await newestIds()).map(read))
      return all.filter((edit) => edit !== undefined)
    },
  }
}

export type EditHistory = ReturnType<typeof createEditHistory>
