import { chmodSync, closeSync, existsSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeFolder } from './files.ts'

/**
 * Opens a database and prepares it; closes it if that fails. Waits up to `busyMs` for another process that is writing.
 */
export function openDatabase(path: string, busyMs: number, prepare: (database: DatabaseSync) => void): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyMs })
  try {
    prepare(database)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** The schema version. 0 in a new database. */
export const userVersion = (database: DatabaseSync): unknown =>
  database.prepare('PRAGMA user_version').get()?.user_version

/** Runs a transaction as the only writer. */
export function inTransaction<T>(database: DatabaseSync, run: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = run()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** Runs work on the database. Whatever happens to the file, the next call has a database again. */
export interface SqliteFile extends Disposable {
  /** Returns undefined if the work failed. What failed because of a damaged file is tried again with a new one. */
  use<T>(work: (database: DatabaseSync) => T): T | undefined
}

export interface SqliteFileOptions {
  readonly path: string
  /** Creates the tables, in a transaction. */
  create(database: DatabaseSync): void
  readonly version: number
  /** Whether a file of another version stays in place, unused. By default, it is moved aside. */
  readonly keepsOtherVersions?: boolean
  /** Called with every database that is opened. */
  prepare(database: DatabaseSync): void
  /** How long to wait for another process that is writing. */
  readonly busyMs?: number
  /** Reports trouble, and that it is over. Called once per change, not once per attempt. */
  say(trouble: SqliteTrouble | undefined): void
}

export interface SqliteTrouble {
  readonly code: string
  /** Where the unusable file was moved. */
  readonly aside?: string
}

/** How many unusable files are kept. */
const maxAside = 2

/**
 * A database that several processes may write to, each in short transactions. A damaged file, or one of another
 * version, is moved aside, and a new one begins; so does a file that was removed. While the file is locked, or the disk is
 * full or read-only, work fails. A locked file is never moved: other processes have it open, and SQLite
 * would then remove the files of the new one.
 */
export function openSqliteFile(options: SqliteFileOptions): SqliteFile {
  const { path, busyMs = 2_000, say } = options
  let database: DatabaseSync | undefined
  /** The file that is open: someone may replace or remove it. */
  let inode: number | undefined
  let trouble: string | undefined

  const close = () => {
    try {
      database?.close()
    } catch {
      // A damaged database may fail to close.
    }
    database = undefined
  }

  const inodeNow = (): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino

  const current = (): DatabaseSync => {
    if (database && inode !== inodeNow()) close()
    if (!database) {
      database = openAndPrepare(options, busyMs)
      inode = inodeNow()
    }
    return database
  }

  const failed = (error: unknown): { readonly again: boolean } => {
    const before = inode
    close()
    if (!isUnusable(error) || (options.keepsOtherVersions && error instanceof OtherVersion)) {
      report(sqliteCode(error))
      return { again: false }
    }
    // Another process may have replaced the file already.
    const aside = before === undefined || before === inodeNow() ? moveDatabaseAside(path) : undefined
    inode = undefined
    if (aside !== undefined) say({ code: sqliteCode(error), aside })
    return { again: true }
  }

  const report = (code: string | undefined) => {
    if (trouble === code) return
    trouble = code
    say(code === undefined ? undefined : { code })
  }

  const attempt = <T>(work: (database: DatabaseSync) => T): { readonly value: T } | { readonly again: boolean } => {
    try {
      const value = work(current())
      report(undefined)
      return { value }
    } catch (error) {
      return failed(error)
    }
  }

  return {
    use(work) {
      let result = attempt(work)
      if ('again' in result && result.again) result = attempt(work)
      return 'value' in result ? result.value : undefined
    },
    [Symbol.dispose]: close,
  }
}

function openAndPrepare({ path, create, version, prepare }: SqliteFileOptions, busyMs: number): DatabaseSync {
  makeFolder(dirname(path))
  // Create the file before SQLite does, so that only the owner can read it. SQLite gives its other files the same mode.
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
  return openDatabase(path, busyMs, (database) => {
    const kept = userVersion(database)
    if (kept !== 0 && kept !== version) throw new OtherVersion()
    // A crash of this process loses nothing that was committed. A power cut may lose the latest transactions.
    database.exec(
      'PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1024; PRAGMA mmap_size = 0; PRAGMA journal_size_limit = 8388608',
    )
    if (kept === 0) {
      inTransaction(database, () => {
        // Check again: another process may have created the tables in the meantime.
        if (userVersion(database) === 0) {
          create(database)
          database.exec(`PRAGMA user_version = ${version}`)
        }
      })
    }
    prepare(database)
  })
}

/** Written by another version of Toolway. */
class OtherVersion extends Error {}

/** Moves the files of a database aside; undefined if that is impossible. */
function moveDatabaseAside(path: string): string | undefined {
  const aside = `${path}.${new Date().toISOString().replaceAll(':', '-')}.unusable`
  try {
    for (const end of ['', '-wal', '-shm']) if (existsSync(path + end)) renameSync(path + end, aside + end)
  } catch {
    return undefined
  }
  const unusable = readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.`))
  for (const old of unusable
    .filter((name) => name.endsWith('.unusable'))
    .sort()
    .slice(0, -maxAside)) {
    for (const end of ['', '-wal', '-shm']) rmSync(join(dirname(path), old) + end, { force: true })
  }
  return aside
}

/** SQLITE_CORRUPT and SQLITE_NOTADB. */
const damagedCodes = [11, 26]

const errcodeOf = (error: unknown): number | undefined => {
  const { errcode } = error as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

/** Whether the file can never be used again. */
function isUnusable(error: unknown): boolean {
  const code = errcodeOf(error)
  return error instanceof OtherVersion || (code !== undefined && damagedCodes.includes(code))
}

/** A short name for the log. */
function sqliteCode(error: unknown): string {
  if (error instanceof OtherVersion) return 'OTHER_VERSION'
  const { code, errstr } = error as { code?: string; errstr?: string }
  return errstr ?? code ?? String(error)
}
