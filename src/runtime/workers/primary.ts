import type { ChildProcess } from 'node:child_process'
import cluster from 'node:cluster'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Clock } from '../../core/clock.ts'
import type { ConnectionHandle, HandedConnection } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/duration.ts'
import type { RpcPeer } from '../../lib/port-rpc.ts'
import { createConnectionTransfer } from './connection-transfer.ts'
import { broadcastTo, PrimaryServices } from './ipc-stores.ts'
import {
  connectRpc,
  type PrimaryMethods,
  type WorkerIdentity,
  type WorkerMethods,
  workerPort,
  workerVariable,
} from './protocol.ts'

export interface PrimaryOptions {
  readonly workers: number
  readonly interrupted: AbortSignal
  /** How long a worker may take to stop before it is killed. */
  readonly stopTimeoutMs: number
  /** The same for a worker that is replaced. It serves its open connections before it stops. */
  readonly replaceTimeoutMs: number
  /** Called once all workers are listening. `facts` is the data that the first worker reported. */
  listening(facts: unknown): void
  readonly clock: Clock
  readonly log: Log
}

/** How long a worker must run for its exit not to count as another consecutive failure. */
const stableWorkerMs = 60_000
const firstRestartMs = 100
const maxRestartMs = 30_000

/**
 * Runs workers until interrupted, restarts those that exit, and holds the state that they share. The primary serves no
 * requests itself, so no client can crash it. Resolves to the exit code.
 */
export async function runWorkers(options: PrimaryOptions): Promise<number> {
  cluster.setupPrimary({ serialization: 'advanced' })
  const fleet = new WorkerFleet(options)
  const replaceAll = () => fleet.replaceAll()
  const killAll = () => fleet.killAll()
  // Skip Windows, which has no SIGUSR2: listening for it would throw.
  if (process.platform !== 'win32') process.on('SIGUSR2', replaceAll)
  // Leave no orphans: kill workers on exit. If this process is killed, they notice the closed channel and exit.
  process.on('exit', killAll)
  try {
    return await fleet.run()
  } finally {
    await fleet.stopAll()
    process.off('SIGUSR2', replaceAll)
    process.off('exit', killAll)
  }
}

class WorkerFleet {
  readonly #options: PrimaryOptions
  readonly #services: PrimaryServices
  readonly #handles = new Set<WorkerHandle>()
  #restarted = false
  #port: number | undefined
  #replacing = Promise.resolve()

  constructor(options: PrimaryOptions) {
    this.#options = options
    this.#services = new PrimaryServices(options.clock)
  }

  /** Starts all workers, and resolves to the exit code once it is interrupted or the first one failed to start. */
  async run(): Promise<number> {
    const { workers, interrupted, listening } = this.#options
    const stop = interrupted.aborted ? Promise.resolve() : once(interrupted, 'abort').then(() => {})
    const first = this.#start(1)
    first.retired = true
    // If the first worker exits before it is listening, exit too: the others would fail in the same way. The worker has
    // already logged the reason.
    const failed = await Promise.race([first.listening.then(() => undefined), first.ended, stop])
    if (failed) return failed.code ?? 1
    first.retired = false
    const rest = Array.from({ length: workers - 1 }, (_, index) => this.#start(index + 2).listening)
    await Promise.race([Promise.all(rest), stop])
    this.#restarted = true
    if (!interrupted.aborted) listening(await first.listening)
    await stop
    return 0
  }

  /** Rolling restart (SIGUSR2): each worker stops only once its replacement is listening. */
  replaceAll(): void {
    this.#replacing = this.#replacing.then(() => this.#replaceEach())
  }

  async stopAll(): Promise<void> {
    const left = [...this.#handles]
    for (const handle of left) handle.stop(this.#options.stopTimeoutMs)
    await Promise.all(left.map(({ ended }) => ended))
  }

  killAll(): void {
    for (const { kill } of this.#handles) kill()
  }

  /** Starts a worker, and restarts it with backoff whenever it exits. */
  #start(number: number, failures = 0): WorkerHandle {
    const { workers, interrupted, clock, log } = this.#options
    const startedAt = clock.monotonic()
    const handle = startWorker({
      ...{ number, of: workers, restarted: this.#restarted, port: this.#port, clock, log },
      methods: (name) => this.#methodsFor(() => handle, name),
      transferConnection: async (to, connection) => {
        const owner = [...this.#handles].find(({ name }) => name === to)
        return owner?.connections.offer(to, connection) ?? false
      },
      bound: (to) => {
        this.#port ??= to
      },
    })
    this.#handles.add(handle)
    void handle.ended.then(({ code, signal }) => {
      this.#services.registry.leave(handle.name)
      this.#handles.delete(handle)
      this.#announceMembers()
      if (handle.retired || interrupted.aborted) return
      const fails = clock.monotonic() - startedAt > stableWorkerMs ? 0 : failures
      const pauseMs = backoffMs(fails, { firstMs: firstRestartMs, maxMs: maxRestartMs })
      log.warn({ worker: number, code, signal, pauseMs }, 'worker exited; restarting it')
      clock.after(pauseMs, () => interrupted.aborted || this.#start(number, fails + 1))
    })
    return handle
  }

  async #replaceEach(): Promise<void> {
    const { workers, interrupted, replaceTimeoutMs, log } = this.#options
    for (const before of [...this.#handles]) {
      before.retired = true
      const next = this.#start(before.number)
      // While `retired` is set, the new worker is not restarted if it exits before it is listening.
      next.retired = true
      const failed = await Promise.race([next.listening.then(() => undefined), next.ended])
      if (interrupted.aborted) return
      if (failed) {
        log.error({ worker: next.number, ...failed }, 'new worker failed to start; keeping the old ones')
        before.retired = false
        if (!this.#handles.has(before)) this.#start(before.number)
        return
      }
      next.retired = false
      before.stop(replaceTimeoutMs, { replaced: true })
      await before.ended
    }
    log.info({ workers }, 'all workers replaced')
  }

  #methodsFor(handle: () => WorkerHandle, name: string): Omit<PrimaryMethods, 'listening'> {
    const others = () => [...this.#handles].filter((other) => other !== handle())
    return {
      ...this.#services.methodsFor(name, () => this.#announceMembers()),
      spread: broadcastTo(others),
      async pages(accept) {
        const pages = others().map(async ({ number, rpc }) => {
          const page = await rpc.request('page', accept)
          return page ? [{ ...page, number }] : []
        })
        return (await Promise.all(pages)).flat()
      },
    }
  }

  #announceMembers(): void {
    for (const { rpc } of this.#handles) rpc.notify('members', this.#services.registry.members())
  }
}

type WorkerHandle = ReturnType<typeof startWorker>

interface WorkerExit {
  readonly code: number | null
  readonly signal: string | null
}

interface WorkerHandleOptions extends Pick<PrimaryOptions, 'clock' | 'log'>, Omit<WorkerIdentity, 'name'> {
  methods(name: string): Omit<PrimaryMethods, 'listening'>
  /** Hands a connection to the worker with this name. Resolves with false if that has certainly not taken it. */
  transferConnection(to: string, connection: HandedConnection): Promise<boolean>
  /** Called with the port on which the worker listens. */
  bound(port: number): void
}

/** Timeout for requests to workers. They are for metrics and pings, and a busy worker needs a moment to respond. */
const workerTimeoutMs = 2_000
const pingEveryMs = 5_000

/**
 * Calls `hung` once if a worker does not respond for about half a minute, because its event loop is blocked or it was
 * paused. Otherwise, clients whose connections it gets would wait forever.
 */
export function detectHang(rpc: RpcPeer<Pick<WorkerMethods, 'ping'>>, clock: Clock, hung: () => void): Disposable {
  let timer = clock.after(pingEveryMs, check)
  let wasUp = true
  let isDisposed = false

  async function check(): Promise<void> {
    await rpc.request('ping')
    if (isDisposed) return
    if (!(wasUp || rpc.up)) return hung()
    wasUp = rpc.up
    timer = clock.after(pingEveryMs, check)
  }

  return {
    [Symbol.dispose]() {
      isDisposed = true
      timer[Symbol.dispose]()
    },
  }
}

function startWorker(options: WorkerHandleOptions) {
  const { number, of, restarted = false, methods, transferConnection, bound, clock, log } = options
  const name = randomBytes(6).toString('base64url')
  // Not on Windows, where it has not been tested.
  const transfersConnections = process.platform !== 'win32'
  const identity: WorkerIdentity = { name, number, of, restarted, transfersConnections, port: options.port }
  const worker = cluster.fork({ [workerVariable]: JSON.stringify(identity) })
  const listening = Promise.withResolvers<unknown>()
  const ended = Promise.withResolvers<WorkerExit>()
  worker.on('listening', ({ port }) => bound(port))
  worker.on('exit', (code, signal) => ended.resolve({ code, signal }))
  // Ignore errors from a broken channel, because `exit` follows.
  worker.on('error', () => {})
  worker.on('exit', trackConnections(worker.process))
  const kill = () => void worker.process.kill('SIGKILL')
  const port = workerPort(worker)
  const connections = createConnectionTransfer(port, async (to, connection) => {
    const gone = await transferConnection(to, connection)
    connection.handle.close()
    return gone
  })
  void ended.promise.then(() => connections.lost())
  const own: PrimaryMethods = { ...methods(name), listening: listening.resolve }
  const rpc = connectRpc<WorkerMethods>({
    ...{ port, methods: own, peer: `worker ${number}`, clock, log },
    timeoutMs: () => workerTimeoutMs,
  })
  void listening.promise.then(() => {
    const detector = detectHang(rpc, clock, () => {
      log.error({ worker: number }, 'killing a worker that does not respond')
      kill()
    })
    void ended.promise.then(() => detector[Symbol.dispose]())
  })
  return {
    number,
    name,
    rpc,
    connections,
    /** Resolves once the worker is listening, with the data that it reported. */
    listening: listening.promise,
    ended: ended.promise,
    /** Set if the worker must not be restarted when it exits. */
    retired: false,
    /** Stops the worker gracefully, and kills it after the timeout. */
    stop(timeoutMs: number, { replaced } = { replaced: false }): void {
      // Wait until the worker is listening: before that, it does not handle messages.
      void listening.promise.then(() => rpc.notify('stop', replaced))
      const timer = clock.after(timeoutMs, kill)
      void ended.promise.then(() => timer[Symbol.dispose]())
    },
    kill,
  }
}

/** How Node's cluster module numbers a connection that it hands to a worker, and what the worker answers. */
interface NewConnection {
  readonly seq?: number
  readonly ack?: number
  readonly accepted?: boolean
}

/**
 * Returns a function that closes the connections that a worker was handed and has not accepted. Node forgets them when
 * the worker dies, and their clients would wait forever. They cannot be handed to another worker, because the dead one
 * may have read the request. Node hands those that a stopping worker refuses to another worker by itself.
 */
function trackConnections(worker: ChildProcess): () => void {
  /** Node's cluster module closes these here once a worker has accepted them. */
  const unanswered = new Map<number, ConnectionHandle>()
  const send = worker.send.bind(worker) as (...sent: unknown[]) => boolean
  worker.send = (...sent: unknown[]) => {
    const [{ seq }, handle] = sent as [NewConnection, ConnectionHandle | undefined]
    if (seq !== undefined && typeof handle?.close === 'function') unanswered.set(seq, handle)
    return send(...sent)
  }
  worker.on('internalMessage', ({ ack, accepted }: NewConnection) => {
    if (ack !== undefined && accepted !== undefined) unanswered.delete(ack)
  })
  return () => {
    for (const handle of unanswered.values()) handle.close()
  }
}
