import cluster, { type Worker } from 'node:cluster'
import type { Clock } from '../../core/clock.ts'
import type { HandedConnection, PubSub } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import type { Buckets, CacheLimits } from '../../core/stores.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { defaultRpcTimeoutMs, type RpcPeer, type RpcPort } from '../../lib/port-rpc.ts'
import { createSeal } from '../../lib/seal.ts'
import { createConnectionTransfer } from './connection-transfer.ts'
import { type IpcMembership, ipcBuckets, ipcCache, ipcMembership, ipcPubSub, ipcTtlStore } from './ipc-stores.ts'
import {
  connectRpc,
  type MetricsPage,
  type PrimaryMethods,
  type WorkerIdentity,
  type WorkerMethods,
  type WorkerMetricsPage,
  workerPort,
  workerVariable,
} from './protocol.ts'

/** Timeout for metrics; longer than the time that the primary waits for the slowest worker. */
const metricsTimeoutMs = 3_000

/** This process as a worker; undefined if it is not one. */
export function currentWorker(env: Readonly<Record<string, string | undefined>>): WorkerProcess | undefined {
  const { worker } = cluster
  const identity = env[workerVariable]
  if (worker === undefined || identity === undefined) return undefined
  return new WorkerProcess(worker, jsonValue(identity) as WorkerIdentity)
}

interface SharedStoresOptions {
  /** Buckets to use while the primary is not responding. */
  readonly local: Buckets
  readonly limits: CacheLimits
  /** The secret in the state folder, which all workers share. */
  ownSecret(): Promise<string>
  readonly clock: Clock
  readonly log: Log
}

/** This process as one of several workers, and what the primary process holds for all of them. */
export class WorkerProcess {
  readonly identity: WorkerIdentity
  readonly #port: RpcPort
  readonly #interrupt = new AbortController()
  readonly #replace = new AbortController()
  readonly #gone = Promise.withResolvers<void>()
  /** Aborted when the primary stops, or has exited. */
  readonly interrupted: AbortSignal = this.#interrupt.signal
  /** Aborted when another worker has replaced this one. */
  readonly replaced: AbortSignal = this.#replace.signal
  /** Resolves when the primary has exited. */
  readonly gone: Promise<void> = this.#gone.promise
  /** Undefined before `open` is called. */
  membership: IpcMembership | undefined
  #primary: RpcPeer<PrimaryMethods> | undefined
  #page: ((accept?: string) => MetricsPage) | undefined

  constructor(worker: Worker, identity: WorkerIdentity) {
    this.identity = identity
    this.#port = workerPort(worker)
    // Ignore channel errors: writing to a channel that has just closed emits an error, and `disconnect` follows.
    worker.on('error', () => {})
    const primaryExited = () => {
      // Without this, Node would exit at once and abort calls in progress.
      worker.exitedAfterDisconnect = true
      this.#interrupt.abort()
      this.#gone.resolve()
    }
    worker.on('disconnect', primaryExited)
    if (!worker.isConnected()) primaryExited()
  }

  /** Where the first worker listened; undefined if this is the first. */
  get port(): number | undefined {
    return this.identity.port
  }

  /** Connects to the primary process and opens the stores that it holds. */
  async open({ local, limits, ownSecret, clock, log }: SharedStoresOptions) {
    const { name } = this.identity
    const secret = await ownSecret()
    const methods: WorkerMethods = {
      members: (members) => membership.update(members),
      stop: (replaced) => (replaced ? this.#replace : this.#interrupt).abort(),
      hear: (topic, text) => pubSub.deliver(topic, text),
      page: (accept) => this.#page?.(accept),
      ping() {},
    }
    const primary = connectRpc<PrimaryMethods>({
      ...{ port: this.#port, methods, peer: 'the primary process', clock, log },
      timeoutMs: (method) => (method === 'pages' ? metricsTimeoutMs : defaultRpcTimeoutMs),
    })
    let take = (_connection: HandedConnection) => false
    const connections = createConnectionTransfer(this.#port, (_to, connection) => {
      const isTaken = take(connection)
      if (!isTaken) connection.handle.close()
      return isTaken
    })
    void this.gone.then(() => connections.lost())
    const membership: IpcMembership = {
      ...ipcMembership(primary, secret, name),
      ...(this.identity.transfersConnections && { transferConnection: connections.offer }),
      onConnection(listener) {
        take = listener
      },
    }
    const pubSub = ipcPubSub(primary, log)
    this.#primary = primary
    this.membership = membership
    return {
      buckets: ipcBuckets(primary, local, clock),
      cache: ipcCache(primary, limits),
      membership,
      pubSub: pubSub as PubSub,
      ttlStore: ipcTtlStore(primary),
      /** Seals cursors and other tokens that clients hold. */
      seal: createSeal(secret, name),
      get up() {
        return primary.up
      },
    }
  }

  /** Joins the workers; `address` is where other workers reach this one. */
  async join(address: string): Promise<void> {
    await this.membership?.join(address)
  }

  /** Tells the primary process that this worker serves clients. */
  listening(facts: unknown): void {
    this.#primary?.notify('listening', facts)
  }

  /** The address of the worker that serves the dashboard and its logins; undefined if that is this worker. */
  lead(): string | undefined {
    return this.membership?.lead()
  }

  /** Returns a function that merges all other workers' metrics with `own`. */
  pages(own: (accept?: string) => MetricsPage): (accept?: string) => Promise<MetricsPage> {
    this.#page = own
    return async (accept) => {
      const others = (await this.#primary?.request('pages', accept)) ?? []
      const all: WorkerMetricsPage[] = [...others, { number: this.identity.number, ...own(accept) }]
      return mergeMetrics(all.sort((a, b) => a.number - b.number))
    }
  }
}

interface Family {
  readonly header: Set<string>
  readonly samples: string[]
}

/**
 * Merges the metrics of several workers into one page, grouped by family as the format requires. Each sample gets a
 * `worker` label. Samples are not summed, because queries can do that.
 */
export function mergeMetrics(pages: readonly WorkerMetricsPage[]): MetricsPage {
  const families = new Map<string, Family>()
  const familyOf = (name: string): Family => {
    const family = families.get(name) ?? { header: new Set(), samples: [] }
    families.set(name, family)
    return family
  }
  for (const { number, body } of pages) {
    let family: Family | undefined
    for (const line of body.split('\n')) {
      const [, name] = /^# (?:HELP|TYPE) (\S+)/.exec(line) ?? []
      if (name !== undefined) {
        family = familyOf(name)
        family.header.add(line)
      } else if (line !== '' && line !== '# EOF') family?.samples.push(withWorkerLabel(line, number))
    }
  }
  const text = [...families.values()].flatMap(({ header, samples }) => [...header, ...samples])
  if (pages[0]?.body.endsWith('# EOF\n')) text.push('# EOF')
  return { contentType: pages[0]?.contentType ?? 'text/plain', body: text.map((line) => `${line}\n`).join('') }
}

/** Adds the `worker` label to a sample. Metric names do not contain braces, so the first brace starts the labels. */
function withWorkerLabel(line: string, worker: number): string {
  const [, name = '', rest = ''] = /^([^{\s]+)(.*)$/.exec(line) ?? []
  const labels = rest.startsWith('{') ? `,${rest.slice(1)}` : `}${rest}`
  return `${name}{worker="${worker}"${labels}`
}
