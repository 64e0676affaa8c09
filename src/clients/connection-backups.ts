import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { FileProblem, type FileSnapshot, readSnapshot, remove, replaceFile } from '../config/edit/file.ts'
import type { ClientKind } from '../config/import/client-kind.ts'
import { jsonValue } from '../json/parse-json.ts'
import { clientText } from './entry.ts'

/** A record of Toolway's change to a client's file, needed to undo it. */
interface Connection {
  readonly version: 1
  readonly client: ClientKind
  readonly path: string
  readonly existed: boolean
  readonly mode: number
  /** Hashes of the original content and of the content that Toolway wrote. */
  readonly before: string
  readonly after: string
  /** True if somebody else changed the file between two of Toolway's changes; undo discards that change. */
  readonly changed?: boolean
  /** Folders created for the file, innermost first. */
  readonly folders: readonly string[]
  readonly at: string
}

const hashOf = (bytes: Buffer | undefined): string =>
  bytes === undefined ? 'none' : createHash('sha256').update(bytes).digest('hex')

/** Writes and restores clients' files. Backups are kept in `folder`. */
export class ConnectionBackups {
  readonly #folder: string
  readonly #now: () => number

  constructor(folder: string, now: () => number) {
    this.#folder = folder
    this.#now = now
  }

  /**
   * Backs up the current content, then writes the new content. While the file is connected, the first backup stays, so
   * that undo restores the original; content that somebody else wrote since is kept beside it. `changed` says that
   * somebody did, so that undo needs `force`.
   */
  async write(client: ClientKind, before: FileSnapshot, content: string) {
    const { path } = before
    const bytes = Buffer.from(before.mark + content)
    const stem = this.#stemOf(client, path)
    const backup = `${stem}.backup`
    const earlier = await readConnection(stem)
    const isOurs = earlier?.after === hashOf(before.bytes)
    const first = isOurs || hasEntry(client, before) ? earlier : undefined
    if (first) {
      if (!isOurs && before.bytes) await this.#keepCopy(stem, before.bytes)
    } else {
      const replaced = earlier?.existed ? await readFile(backup).catch(() => undefined) : undefined
      if (replaced) await this.#keepCopy(stem, replaced)
      await this.#keep(backup, before.bytes ?? Buffer.alloc(0))
    }
    const changed = first !== undefined && (first.changed === true || !isOurs)
    const record: Connection = {
      version: 1,
      client,
      path,
      existed: first?.existed ?? before.bytes !== undefined,
      mode: first?.mode ?? before.mode,
      before: first?.before ?? hashOf(before.bytes),
      after: hashOf(bytes),
      ...(changed && { changed }),
      folders: first?.folders ?? [],
      at: new Date(this.#now()).toISOString(),
    }
    await this.#record(stem, record)
    const folders = await replaceFile(before, bytes)
    if (folders.length > 0) await this.#record(stem, { ...record, folders })
    return { backup, changed }
  }

  /**
   * Restores the original file, or deletes Toolway's if there was none. Fails if the file has changed since Toolway wrote
   * it, unless `force` is set. `kept` is the path of the content that was discarded.
   */
  async undo(client: ClientKind, path: string, force: boolean) {
    const stem = this.#stemOf(client, path)
    const record = await readConnection(stem)
    if (!record) throw new FileProblem(`Nothing to undo: Toolway has not changed ${path}.`)
    const found = await readSnapshot(path)
    const current = hashOf(found.bytes)
    const changed = current !== record.before && (record.changed === true || current !== record.after)
    if (changed && !force) {
      throw new FileProblem(
        `${path} has changed since it was connected; undoing would lose those changes.`,
        '--remove removes only the entry for Toolway; --force restores the original file anyway.',
      )
    }
    const kept = changed && found.bytes ? await this.#keepCopy(stem, found.bytes) : undefined
    if (current !== record.before) await putBack(record, found, await backupOf(stem, record))
    await rm(`${stem}.json`, { force: true })
    await rm(`${stem}.backup`, { force: true })
    return { restored: record.existed, forced: changed, kept }
  }

  async has(client: ClientKind, path: string): Promise<boolean> {
    return (await readConnection(this.#stemOf(client, path))) !== undefined
  }

  #stemOf(client: ClientKind, path: string): string {
    return join(this.#folder, `${client}-${hashOf(Buffer.from(path)).slice(0, 12)}`)
  }

  async #keep(file: string, bytes: Buffer): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await replaceFile({ ...(await readSnapshot(file)), mode: 0o600, owner: undefined }, bytes)
  }

  /** Keeps content that would otherwise be lost, under a name of its own. Returns its path. */
  async #keepCopy(stem: string, bytes: Buffer): Promise<string> {
    const file = `${stem}.${hashOf(bytes).slice(0, 12)}.kept`
    await this.#keep(file, bytes)
    return file
  }

  #record(stem: string, connection: Connection): Promise<void> {
    return this.#keep(`${stem}.json`, Buffer.from(`${JSON.stringify(connection, undefined, 2)}\n`))
  }
}

async function readConnection(stem: string): Promise<Connection | undefined> {
  try {
    return jsonValue(await readFile(`${stem}.json`, 'utf8')) as Connection
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new FileProblem(`${stem}.json cannot be read.`, 'The backup of the original file is in the same folder.')
  }
}

const hasEntry = (client: ClientKind, { path, bytes, text }: FileSnapshot): boolean =>
  bytes !== undefined && clientText(client, path, text).own.length > 0

async function backupOf(stem: string, { existed, before }: Connection): Promise<Buffer> {
  if (!existed) return Buffer.alloc(0)
  const bytes = await readFile(`${stem}.backup`).catch(() => undefined)
  if (bytes === undefined || hashOf(bytes) !== before) {
    throw new FileProblem(`The backup ${stem}.backup is damaged or missing; nothing was changed.`)
  }
  return bytes
}

async function putBack({ existed, mode, folders }: Connection, found: FileSnapshot, backup: Buffer): Promise<void> {
  if (existed) return void (await replaceFile({ ...found, mode }, backup))
  await remove(found)
  try {
    for (const folder of folders) await rmdir(folder)
  } catch {
    // Stop at a folder that is not empty: it and its parents are in use.
  }
}
