import { closeSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { inTransaction, openDatabase, userVersion } from '../../lib/sqlite.ts'
import { matches } from '../../lib/wildcard.ts'

/** The index file. The index is derived from the segments and can always be rebuilt. */
export const indexFile = (folder: string): string => join(folder, 'index.sqlite')

/** Max time to wait for another process that is updating the index. One batch takes a fraction of a second. */
const busyMs = 30_000

/** Opens the index. Creates it if it is missing or damaged. */
export function openIndex(folder: string): DatabaseSync {
  const path = indexFile(folder)
  if (!mayWrite(path)) return prepared(':memory:')
  try {
    return prepared(path)
  } catch (error) {
    if (!isIndexDamaged(error)) throw error
    removeIndex(folder)
    return prepared(path)
  }
}

/** Removes the index files. Processes that have them open continue with their copy. */
export function removeIndex(folder: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(indexFile(folder) + end, { force: true })
}

export const emptyIndex = (database: DatabaseSync): void => inTransaction(database, () => recreateTables(database))

export function isIndexDamaged(error: unknown): boolean {
  const code = (error as { errcode?: unknown }).errcode
  return typeof code === 'number' && [sqliteCorrupt, sqliteNotADatabase].includes(code & 0xff)
}

const sqliteCorrupt = 11
const sqliteNotADatabase = 26

/** Whether the index can be written; creates the file if necessary. A read-only log gets an index in memory. */
function mayWrite(path: string): boolean {
  try {
    closeSync(openSync(path, 'a', 0o600))
    return true
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['EACCES', 'EPERM', 'EROFS'].includes(code)) return false
    throw error
  }
}

const prepared = (path: string): DatabaseSync =>
  openDatabase(path, busyMs, (database) => {
    // Do not wait for the disk when committing, because the index can be rebuilt.
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536',
    )
    if (userVersion(database) !== indexVersion) {
      inTransaction(database, () => {
        // Check again: another process may have created the tables in the meantime.
        if (userVersion(database) !== indexVersion) recreateTables(database)
      })
    }
    database.function('wildcard', { deterministic: true }, (pattern, text) =>
      text !== null && matches(String(pattern), String(text)) ? 1 : 0,
    )
  })

/** The schema version. Increment it with every change to the tables or their contents, so that indexes are rebuilt. */
const indexVersion = 1

/**
 * `records` holds only the columns that are searched; the rest is read from the segments, at `file`, `at` and `bytes`.
 * `shown` marks the record that represents an operation: its end, or its beginning while there is no end. `begin`
 * refers from an end to its beginning.
 */
const tables = `
  CREATE TABLE lanes (
    lane INTEGER PRIMARY KEY, file INTEGER NOT NULL, at INTEGER NOT NULL,
    last INTEGER NOT NULL, hash TEXT NOT NULL
  ) STRICT;
  CREATE TABLE records (
    id INTEGER PRIMARY KEY, lane INTEGER NOT NULL, seq INTEGER NOT NULL,
    file INTEGER NOT NULL, at INTEGER NOT NULL, bytes INTEGER NOT NULL,
    time INTEGER NOT NULL, phase TEXT, shown INTEGER NOT NULL, begin INTEGER,
    operation TEXT NOT NULL, call TEXT, parent TEXT, agent TEXT, principal TEXT, server TEXT, tool TEXT,
    decision TEXT, reason TEXT, code TEXT, is_error INTEGER NOT NULL, latency_ms REAL
  ) STRICT;
  CREATE UNIQUE INDEX records_place ON records (lane, seq);
  CREATE INDEX records_time ON records (time, lane, seq);
  CREATE INDEX records_call ON records (call) WHERE call IS NOT NULL;
  CREATE INDEX records_agent ON records (agent, time) WHERE shown = 1;
  CREATE INDEX records_tool ON records (server, tool, time) WHERE shown = 1;
  CREATE INDEX records_refused ON records (decision, time) WHERE shown = 1 AND decision <> 'ALLOW';
`

/** The full-text index: trigrams of the arguments, without a copy of the arguments themselves. */
const words = `
  CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
  )
`

function recreateTables(database: DatabaseSync): void {
  // Drop virtual tables first: dropping one also drops its shadow tables.
  for (const which of ["sql LIKE 'CREATE VIRTUAL%'", "name NOT LIKE 'sqlite_%'"]) {
    const found = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND ${which}`).all()
    for (const { name } of found) database.exec(`DROP TABLE "${name}"`)
  }
  database.exec(tables)
  try {
    database.exec(words)
  } catch (error) {
    // If SQLite lacks full-text search, text is searched for in the segments.
    if (!/no such module/.test((error as Error).message)) throw error
  }
  database.exec(`PRAGMA user_version = ${indexVersion}`)
}

export const hasWords = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'words'").get() !== undefined
