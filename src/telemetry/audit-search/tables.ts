import type { DatabaseSync } from 'node:sqlite'

/** To be raised with every change of the tables or of what is put into them: an index of another version is rebuilt. */
export const indexVersion = 1

/**
 * Records have only what is searched; the rest is read from the segments, at `file`, `at` and `bytes`.
 * `shown` marks what stands for an operation: its end, or its beginning as long as there is no end; `begin` leads from
 * an end to its beginning.
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

/** Which records hold a run of three characters in their arguments; no copy of the arguments themselves. */
const words = `
  CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
  )
`

/** Makes the tables. Where SQLite came without full-text search, texts are looked for in the segments. */
export function createTables(database: DatabaseSync): void {
  database.exec(tables)
  try {
    database.exec(words)
  } catch (error) {
    if (!/no such module/.test((error as Error).message)) throw error
  }
  database.exec(`PRAGMA user_version = ${indexVersion}`)
}

export function removeTables(database: DatabaseSync): void {
  const found = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'")
    .all()
  for (const { name } of found) database.exec(`DROP TABLE "${name}"`)
  const rest = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
  for (const { name } of rest) database.exec(`DROP TABLE "${name}"`)
}

export const hasWords = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'words'").get() !== undefined
