import { parentPort, workerData } from 'node:worker_threads'
import type { CallFilter, CallPageQuery } from '../../core/call-query.ts'
import { systemClock } from '../../core/clock.ts'
import type { StoredLogin, TallyQuery } from '../../core/history.ts'
import { createPortRpc } from '../../lib/port-rpc.ts'
import type { SqliteTrouble } from '../../lib/sqlite.ts'
import { decodeBatch } from './history-batch.ts'
import { type HistoryDatabaseOptions, openHistoryDatabase } from './history-database.ts'

// The thread that owns the history's database: writing to a disk would delay calls.

export type HistoryThreadData = Pick<HistoryDatabaseOptions, 'path' | 'keepMs' | 'maxBytes' | 'captures' | 'startedAt'>

export type HistoryThreadMethods = {
  /** `batch` is encoded by `encodeBatch`. */
  write(batch: string): boolean
  sums(query: TallyQuery): ReturnType<Database['sums']>
  calls(query: CallPageQuery): ReturnType<Database['calls']>
  choices(filter: CallFilter): ReturnType<Database['choices']>
  call(id: string): ReturnType<Database['call']>
  capture(id: string, since: number): string | undefined
  addLogin(login: StoredLogin): boolean
  findLogin(digest: string): StoredLogin | null | undefined
  removeLogin(digest: string): void
  close(): true
}

/** Methods of the gateway that the thread calls. */
export type HistoryOwnerMethods = {
  say(trouble: SqliteTrouble | undefined): void
}

type Database = ReturnType<typeof openHistoryDatabase>

if (parentPort) {
  const port = parentPort
  const data = workerData as HistoryThreadData
  const database = openHistoryDatabase({
    ...data,
    clock: systemClock,
    say: (trouble) => owner.notify('say', trouble),
  })
  const methods: HistoryThreadMethods = {
    write: (batch) => database.write(decodeBatch(batch)),
    sums: database.sums,
    calls: database.calls,
    choices: database.choices,
    call: database.call,
    capture: database.capture,
    addLogin: database.addLogin,
    findLogin: database.findLogin,
    removeLogin: database.removeLogin,
    close() {
      database[Symbol.dispose]()
      return true
    },
  }
  const owner = createPortRpc<HistoryOwnerMethods>({
    port: { send: (message) => port.postMessage(message), onMessage: (listener) => void port.on('message', listener) },
    methods,
    clock: systemClock,
    errors: { encode: () => undefined, decode: () => new Error() },
    onFailure: (thrown) => owner.notify('say', { code: String(thrown) }),
  })
}
