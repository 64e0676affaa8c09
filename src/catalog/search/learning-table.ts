import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { inTransaction, openSqliteFile, type SqliteFile, type SqliteTrouble } from '../../lib/sqlite.ts'
import type { LearnedQuery } from './learned-queries.ts'

export interface LearnedRow extends LearnedQuery {
  readonly agent: string
  readonly principal: string
  readonly definition: string
}

/** What to forget. Without members, everything. */
export interface LearnedFilter {
  readonly agent?: string | undefined
  readonly tool?: string | undefined
}

const learnedVersion = 1
const learnedSchema = `
  CREATE TABLE learned (agent TEXT NOT NULL, principal TEXT NOT NULL, tool TEXT NOT NULL, words TEXT NOT NULL,
    definition TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (agent, principal, tool, words)) WITHOUT ROWID`

const upsertLearned = `
  INSERT INTO learned VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET definition = excluded.definition, at = excluded.at`
/** Queries for an earlier definition of the tool are forgotten. */
const deleteOutdated = 'DELETE FROM learned WHERE agent = ? AND principal = ? AND tool = ? AND definition <> ?'
const deleteOldestOfTool = `
  DELETE FROM learned WHERE (agent, principal, tool, words) IN (
    SELECT agent, principal, tool, words FROM learned WHERE agent = ? AND principal = ? AND tool = ?
    ORDER BY at DESC LIMIT -1 OFFSET ?)`
const largestHolder = 'SELECT principal FROM learned GROUP BY principal ORDER BY count(*) DESC LIMIT 1'
const deleteOldestOfPrincipal = `
  DELETE FROM learned WHERE (agent, principal, tool, words) IN (
    SELECT agent, principal, tool, words FROM learned WHERE principal = ? ORDER BY at LIMIT ?)`

/** Max queries that one principal can teach a tool, as one agent. */
export const maxOfTool = 8
/** Max queries in all. What is over it comes out of the share of the principal that has most. */
const maxLearned = 10_000
/** How many of its queries that principal loses at a time. */
const evictedAtOnce = 100

/** How long to wait for another process that is writing. What could not be written is lost. */
const learnedBusyMs = 50

export const learnedPath = (folder: string): string => join(folder, 'search', 'learned.sqlite')

/** The learned queries, in a table that the processes of this machine share. */
export class LearningTable implements Disposable {
  readonly #file: SqliteFile
  #version: unknown

  constructor(folder: string, say: (trouble: SqliteTrouble | undefined) => void) {
    this.#file = openSqliteFile({
      path: learnedPath(folder),
      version: learnedVersion,
      busyMs: learnedBusyMs,
      create: (database) => database.exec(learnedSchema),
      prepare: () => {},
      say,
    })
  }

  /** All rows; undefined if nobody has written since they were last read, or they cannot be read. */
  changed(): readonly LearnedRow[] | undefined {
    return this.#file.use((database) => {
      const version = database.prepare('PRAGMA data_version').get()?.data_version
      if (version === this.#version) return undefined
      this.#version = version
      const rows = database.prepare('SELECT * FROM learned').all() as unknown as StoredRow[]
      return rows.map(({ words, ...row }) => ({ ...row, words: words.split(' ') }))
    })
  }

  /** Adds rows, and removes those older than `since` and those over a bound. */
  add(rows: readonly LearnedRow[], since: number): void {
    this.#file.use((database) =>
      inTransaction(database, () => {
        for (const row of rows) addRow(database, row)
        database.prepare('DELETE FROM learned WHERE at < ?').run(since)
        while (countLearned(database) > maxLearned) {
          const holder = database.prepare(largestHolder).get()?.principal as string
          database.prepare(deleteOldestOfPrincipal).run(holder, evictedAtOnce)
        }
      }),
    )
    this.#version = undefined
  }

  /** Returns how many queries were forgotten; undefined if the table cannot be written. */
  forget({ agent, tool }: LearnedFilter): number | undefined {
    return this.#file.use((database) => {
      const sql = 'DELETE FROM learned WHERE (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR tool = ?2)'
      return Number(database.prepare(sql).run(agent ?? null, tool ?? null).changes)
    })
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]()
  }
}

type StoredRow = Omit<LearnedRow, 'words'> & { readonly words: string }

const countLearned = (database: DatabaseSync): number =>
  Number(database.prepare('SELECT count(*) AS count FROM learned').get()?.count)

function addRow(database: DatabaseSync, { agent, principal, tool, words, definition, at }: LearnedRow): void {
  database.prepare(deleteOutdated).run(agent, principal, tool, definition)
  database.prepare(upsertLearned).run(agent, principal, tool, words.join(' '), definition, at)
  database.prepare(deleteOldestOfTool).run(agent, principal, tool, maxOfTool)
}
