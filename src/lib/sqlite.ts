import { DatabaseSync } from 'node:sqlite'

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
