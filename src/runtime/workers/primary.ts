import cluster from 'node:cluster'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/backoff.ts'
import { broadcastTo } from './ipc-stores.ts'
import { createLine, type Line, type Port } from './line.ts'
import { createPrimaryServices } from './primary-services.ts'
import { type PrimaryMethods, type WorkerIdentity, type WorkerMethods, workerVariable } from './protocol.ts'

export interface PrimaryOptions {
  readonly workers: number
  /** Ends all of them. */
  readonly interrupted: AbortSignal
  /** How long one may take to end before it is killed. */
  readonly patienceMs: number
  /** All take requests; with what the first of them said. */
  listening(facts: unknown): void
  readonly clock: Clock
  readonly log: Log
}

/** One that ends sooner has not recovered from what the one before it ended of. */
const steadyMs = 60_000
const firstPauseMs = 100
const maxPauseMs = 30_000

/**
 * Runs workers until it is interrupted: starts again what dies, and holds what they share. It serves nothing itself,
 * so that nothing a client sends can end it. Gives the exit code.
 */
export async function runWorkers(options: PrimaryOptions): Promise<number> {
  const { workers: of, interrupted, clock, log } = options
  const services = createPrimaryServices(clock)
  /** Those that live. */
  const handles = new Set<WorkerHandle>()
  cluster.setupPrimary({ serialization: 'advanced' })

  const others = (handle: WorkerHandle) => [...handles].filter((other) => other !== handle)
  const tellMembers = () => {
    for (const { line } of handles) line.tell('members', services.registry.members())
  }

  const answersFor = (handle: () => WorkerHandle, name: string): Omit<PrimaryMethods, 'listening'> => ({
    ...services.methodsFor(name, tellMembers),
    spread: broadcastTo(() => others(handle())),
    async pages(accept) {
      const asked = others(handle()).map(async ({ number, line }) => {
        const page = await line.ask('page', accept)
        return page ? [{ ...page, number }] : []
      })
      return (await Promise.all(asked)).flat()
    },
  })

  /** Starts one in a place, and another whenever that has ended, until all are to end. */
  const begin = (number: number, failures = 0): WorkerHandle => {
    const begun = clock.monotonic()
    const handle = startWorker({ number, of, answers: (name) => answersFor(() => handle, name), clock, log })
    handles.add(handle)
    void handle.ended.then(({ code, signal }) => {
      services.registry.leave(handle.name)
      handles.delete(handle)
      tellMembers()
      if (handle.retired || interrupted.aborted) return
      const fails = clock.monotonic() - begun > steadyMs ? 0 : failures
      const pauseMs = backoffMs(fails, { firstMs: firstPauseMs, maxMs: maxPauseMs })
      log.warn({ worker: number, code, signal, pauseMs }, 'a worker has ended; another one takes its place')
      clock.after(pauseMs, () => interrupted.aborted || begin(number, fails + 1))
    })
    return handle
  }

  /** Another one takes each place in turn, and only then the one before it ends: for a new version (SIGUSR2). */
  const replaceAll = async () => {
    for (const before of [...handles]) {
      before.retired = true
      const next = begin(before.number)
      // Until it takes requests it has no place that another would have to take.
      next.retired = true
      const failed = await Promise.race([next.listening.then(() => undefined), next.ended])
      if (interrupted.aborted) return
      if (failed) {
        log.error({ worker: next.number, ...failed }, 'a new worker does not start; the old ones stay')
        before.retired = false
        if (!handles.has(before)) begin(before.number)
        return
      }
      next.retired = false
      before.stop(options.patienceMs, { replaced: true })
      await before.ended
    }
    log.info({ workers: of }, 'all workers have been replaced')
  }
  let replacing = Promise.resolve()
  const replace = () => {
    replacing = replacing.then(replaceAll)
  }

  const killAll = () => {
    for (const { kill } of handles) kill()
  }
  // Windows knows no such signal, and would not let us listen for it.
  if (process.platform !== 'win32') process.on('SIGUSR2', replace)
  // However this process ends, nobody is left behind; where it is killed, workers notice that and end by themselves.
  process.on('exit', killAll)
  try {
    const stop = interrupted.aborted ? Promise.resolve() : once(interrupted, 'abort').then(() => {})
    const first = begin(1)
    // What keeps the first from starting keeps all of them, and it has said so itself.
    const failed = await Promise.race([first.listening.then(() => undefined), first.ended, stop])
    if (failed) return failed.code ?? 1
    const rest = Array.from({ length: of - 1 }, (_, index) => begin(index + 2).listening)
    await Promise.race([Promise.all(rest), stop])
    if (!interrupted.aborted) options.listening(await first.listening)
    await stop
    return 0
  } finally {
    const left = [...handles]
    for (const handle of left) handle.stop(options.patienceMs)
    await Promise.all(left.map(({ ended }) => ended))
    process.off('SIGUSR2', replace)
    process.off('exit', killAll)
  }
}

/** One worker, as the first process sees it. */
interface WorkerHandle {
  readonly number: number
  readonly name: string
  readonly line: Line<WorkerMethods>
  /** What it said when it began to take requests. */
  readonly listening: Promise<unknown>
  readonly ended: Promise<WorkerExit>
  /** Another one has its place: when it ends, nobody follows. */
  retired: boolean
  /** Lets it finish what it does; kills it where that takes longer. */
  stop(patienceMs: number, how?: { readonly replaced: boolean }): void
  kill(): void
}

interface WorkerExit {
  readonly code: number | null
  readonly signal: string | null
}

interface WorkerHandleOptions {
  readonly number: number
  readonly of: number
  /** What a worker of this name may ask. */
  answers(name: string): Omit<PrimaryMethods, 'listening'>
  readonly clock: Clock
  readonly log: Log
}

/** A worker is asked for nothing but its metrics, which a busy one may take a moment for. */
const pageMs = 2_000

function startWorker({ number, of, answers, clock, log }: WorkerHandleOptions): WorkerHandle {
  const name = randomBytes(6).toString('base64url')
  const started: WorkerIdentity = { name, number, of }
  const worker = cluster.fork({ [workerVariable]: JSON.stringify(started) })
  const listening = Promise.withResolvers<unknown>()
  const ended = Promise.withResolvers<WorkerExit>()
  worker.on('exit', (code, signal) => ended.resolve({ code, signal }))
  // A channel that breaks is told by the end of the process.
  worker.on('error', () => {})
  const kill = () => void worker.process.kill('SIGKILL')
  const port: Port = {
    send: (message) => worker.isConnected() && worker.send(message as object),
    onMessage: (listener) => void worker.on('message', listener),
  }
  const table: PrimaryMethods = { ...answers(name), listening: listening.resolve }
  const other = `worker ${number}`
  const line = createLine<WorkerMethods>({ port, answers: table, other, patienceMs: () => pageMs, clock, log })
  return {
    number,
    name,
    line,
    listening: listening.promise,
    ended: ended.promise,
    retired: false,
    stop(patience, { replaced } = { replaced: false }) {
      // Before it takes requests nobody there would hear it.
      void listening.promise.then(() => line.tell('stop', replaced))
      const timer = clock.after(patience, kill)
      void ended.promise.then(() => timer[Symbol.dispose]())
    },
    kill,
  }
}
