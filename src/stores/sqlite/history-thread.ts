import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../core/clock.ts'
import { createPortRpc } from '../../lib/port-rpc.ts'
import type { SqliteTrouble } from '../../lib/sqlite.ts'
import { decodeBatch } from './history-batch.ts'
import { type HistoryDatabaseOptions, openHistoryDatabase } from './history-database.ts'

// The thread that owns the history's database: writing to a disk would delay calls.

export type HistoryThreadData = Pick<HistoryDatabaseOptions, 'path' | 'keepMs' | 'maxBytes' | 'captures' | 'startedAt'>

type Database = ReturnType<typeof openHistoryDatabase>

export type HistoryThreadMethods = Omit<Database, 'write' | typeof Symbol.dispose> & {
  /** `batch` is encoded by `encodeBatch`. */
  write(batch: string): boolean
  close(): true
}

export type HistoryOwnerMethods = {
  say(trouble: SqliteTrouble | undefined): void
}

if (parentPort) {
  const port = parentPort
  const data = workerData as HistoryThreadData
  const say = (trouble: SqliteTrouble | undefined) => owner.notify('say', trouble)
  const { write, [Symbol.dispose]: close, ...reads } = openHistoryDatabase({ ...data, clock: systemClock, say })
  const methods: HistoryThreadMethods = {
    ...reads,
    write: (batch) => write(decodeBatch(batch)),
    close() {
      close()
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
