import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Clock, systemClock } from '../../core/clock.ts'
import { endWith } from '../../core/deadline.ts'
import type { HistoryStore } from '../../core/history.ts'
import type { Log } from '../../core/log.ts'
import { createPortRpc, type RpcPeer } from '../../lib/port-rpc.ts'
import { decodeBatch, encodeBatch } from './history-batch.ts'
import type { HistoryOwnerMethods, HistoryThreadData, HistoryThreadMethods } from './history-thread.ts'

interface SqliteHistoryOptions extends Omit<HistoryThreadData, 'path'> {
  /** The state folder. */
  readonly folder: string
  /** The module of the thread. */
  readonly thread: URL
  readonly clock: Clock
  readonly log: Log
}

/** How long a request may take. Queries over a month read some hundred thousand rows. */
const timeoutMs = 15_000
/** How long to wait before the thread is started again after it died. */
const restartMs = 10_000
/** The thread holds one batch or one answer at a time. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 2 }

/** The history in a SQLite file in the state folder. The thread and the file are opened on first use. */
export function sqliteHistory({ folder, thread, clock, log, ...data }: SqliteHistoryOptions) {
  const path = join(folder, 'history.sqlite')
  let worker: Worker | undefined
  let peer: RpcPeer<HistoryThreadMethods> | undefined
  let diedAt = Number.NEGATIVE_INFINITY
  let closed = false
  let isStopping = false
  let troubleCode: string | undefined

  const methods: HistoryOwnerMethods = {
    say(trouble) {
      troubleCode = trouble?.aside === undefined ? trouble?.code : undefined
      if (trouble === undefined) log.info({ path }, 'history is stored again')
      else if (trouble.aside === undefined) log.warn({ path, code: trouble.code }, 'history cannot be stored')
      else log.warn({ path, ...trouble }, 'the history file was unusable and was moved aside; a new one begins')
    },
  }

  const connected = (): RpcPeer<HistoryThreadMethods> | undefined => {
    if (peer || closed || clock.monotonic() - diedAt < restartMs) return peer
    const workerData: HistoryThreadData = { path, ...data }
    // `node:sqlite` prints a warning in some versions of Node.
    const execArgv = ['--disable-warning=ExperimentalWarning']
    const started = new Worker(thread, { execArgv, workerData, resourceLimits, name: 'history' })
    started.unref()
    const gone = new AbortController()
    const ended = (cause?: unknown) => {
      gone.abort()
      if (worker !== started) return
      worker = undefined
      peer = undefined
      diedAt = clock.monotonic()
      if (!closed) log.warn({ err: cause }, "the history's thread ended; it is started again when it is needed")
    }
    started.on('error', ended).on('exit', () => ended())
    const rpc = createPortRpc<HistoryThreadMethods>({
      port: {
        send: (message) => started.postMessage(message),
        onMessage: (listener) => void started.on('message', listener),
      },
      methods,
      timeoutMs: () => timeoutMs,
      clock,
      errors: { encode: () => undefined, decode: () => new Error() },
    })
    worker = started
    // A request to a thread that dies ends with it.
    peer = { ...rpc, request: (...params) => endWith(gone.signal, rpc.request(...params)).catch(() => undefined) }
    return peer
  }

  /** Starting a thread takes several times as long as writing a last batch, which no longer delays a call. */
  const writeHere = async (text: string): Promise<boolean> => {
    const { openHistoryDatabase } = await import('./history-database.ts')
    using database = openHistoryDatabase({ path, ...data, clock: systemClock, say: methods.say })
    return database.write(decodeBatch(text))
  }

  const writeText = async (text: string): Promise<boolean> => {
    if (isStopping && peer === undefined) return writeHere(text)
    return (await connected()?.request('write', text)) ?? false
  }

  const store: HistoryStore = {
    // Not async, because the batch would stay in memory until its text is written.
    write: (batch) => writeText(encodeBatch(batch)),
    sums: async (query) => connected()?.request('sums', query),
    calls: async (query) => connected()?.request('calls', query),
    choices: async (filter) => connected()?.request('choices', filter),
    call: async (id) => connected()?.request('call', id),
    capture: async (id, since) => connected()?.request('capture', id, since),
    logins: {
      add: async (login) => (await connected()?.request('addLogin', login)) ?? false,
      find: async (digest) => connected()?.request('findLogin', digest),
      remove: async (digest) => connected()?.request('removeLogin', digest),
    },
    async [Symbol.asyncDispose]() {
      closed = true
      const last = worker
      await peer?.request('close')
      peer = undefined
      await last?.terminate()
    },
  }
  return {
    ...store,
    /** Why the file cannot be used; undefined if it can. */
    trouble: () => troubleCode,
    /** To be called when the process stops: from then on, batches are written without the thread. */
    stopping() {
      isStopping = true
    },
  }
}
