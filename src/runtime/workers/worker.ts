import cluster from 'node:cluster'
import type { Clock } from '../../core/clock.ts'
import type { PubSub, TopicListeners } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import type { Buckets, CacheLimits, CacheStore, TtlStore } from '../../core/stores.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { defaultTimeoutMs, type RpcPeer, type RpcPort } from '../../lib/port-rpc.ts'
import { createSeal, type Seal } from '../../lib/seal.ts'
import { type IpcMembership, ipcBuckets, ipcCache, ipcMembership, ipcPubSub, ipcTtlStore } from './ipc-stores.ts'
import {
  connectRpc,
  type MetricsPage,
  type PrimaryMethods,
  type WorkerIdentity,
  type WorkerMethods,
  type WorkerMetricsPage,
  workerVariable,
} from './protocol.ts'

export interface WorkerProcess {
  readonly shared: SharedServices
  /** Aborted when the primary stops, or has exited. */
  readonly interrupted: AbortSignal
  /** Aborted when another worker has replaced this one. */
  readonly replaced: AbortSignal
  /** Resolves when the primary has exited. */
  readonly gone: Promise<void>
  listening(facts: unknown): void
}

/** Timeout for metrics; longer than the time that the primary waits for the slowest worker. */
const metricsTimeoutMs = 3_000

/** This process's identity as a worker; undefined if it is not a worker. */
export function currentWorker(env: Readonly<Record<string, string | undefined>>): WorkerProcess | undefined {
  const { worker } = cluster
  const identity = env[workerVariable]
  if (worker === undefined || identity === undefined) return undefined
  const { name, number, of, restarted = false, port } = jsonValue(identity) as WorkerIdentity
  const interrupt = new AbortController()
  const replace = new AbortController()
  const gone = Promise.withResolvers<void>()
  let primary: RpcPeer<PrimaryMethods> | undefined
  let membership: IpcMembership | undefined
  let topics: Pick<TopicListeners, 'deliver'> | undefined
  let page: ((accept?: string) => MetricsPage) | undefined

  // Ignore channel errors: writing to a channel that has just closed emits an error, and `disconnect` follows.
  worker.on('error', () => {})
  const primaryExited = () => {
    // Without this, Node would exit at once and abort calls in progress.
    worker.exitedAfterDisconnect = true
    interrupt.abort()
    gone.resolve()
  }
  worker.on('disconnect', primaryExited)
  if (!worker.isConnected()) primaryExited()

  const methods: WorkerMethods = {
    members: (members) => membership?.update(members),
    stop: (replaced) => (replaced ? replace : interrupt).abort(),
    hear: (topic, text) => topics?.deliver(topic, text),
    page: (accept) => page?.(accept),
    ping() {},
  }

  const shared: SharedServices = {
    number,
    of,
    restarted,
    port,
    async open({ local, limits, ownSecret, clock, log }) {
      const secret = await ownSecret()
      const opened = connectRpc<PrimaryMethods>({
        port: toParent,
        methods,
        peer: 'the primary process',
        timeoutMs: (method) => (method === 'pages' ? metricsTimeoutMs : defaultTimeoutMs),
        clock,
        log,
      })
      primary = opened
      membership = ipcMembership(opened, secret, name)
      const pubSub = ipcPubSub(opened, log)
      topics = pubSub
      return {
        buckets: ipcBuckets(opened, local),
        cache: ipcCache(opened, limits),
        membership,
        pubSub,
        ttlStore: ipcTtlStore(opened),
        seal: createSeal(secret, name),
        get up() {
          return opened.up
        },
      }
    },
    get membership() {
      return membership
    },
    join: async (address) => membership?.join(address),
    lead: () => membership?.lead(),
    pages(own) {
      page = own
      return async (accept) => {
        const others = (await primary?.request('pages', accept)) ?? []
        const all: WorkerMetricsPage[] = [...others, { number, ...own(accept) }]
        return mergeMetrics(all.sort((a, b) => a.number - b.number))
      }
    },
  }
  return {
    shared,
    interrupted: interrupt.signal,
    replaced: replace.signal,
    gone: gone.promise,
    listening: (facts) => primary?.notify('listening', facts),
  }
}

const toParent: RpcPort = {
  send: (message) => process.connected && process.send?.(message),
  onMessage: (listener) => void process.on('message', listener),
}

/** Services that one gateway's workers share. */
export interface SharedServices {
  /** This worker's number, counted from 1, and the total number of workers. */
  readonly number: number
  readonly of: number
  /** Whether all workers had been running before this one was started. */
  readonly restarted: boolean
  /** Where the first worker listened; undefined if this is the first. */
  readonly port: number | undefined
  open(options: SharedServicesOptions): Promise<SharedStores>
  /** Undefined before `open` is called. */
  readonly membership: IpcMembership | undefined
  /** Joins the workers; `address` is where other workers reach this one. */
  join(address: string): Promise<void>
  /** The address of the worker that serves the dashboard and its logins; undefined if that is this worker. */
  lead(): string | undefined
  /** Returns a function that merges all other workers' metrics with `own`. */
  pages(own: (accept?: string) => MetricsPage): (accept?: string) => Promise<MetricsPage>
}

interface SharedServicesOptions {
  /** Buckets to use while the primary is not responding. */
  readonly local: Buckets
  readonly limits: CacheLimits
  /** The secret in the state folder, which all workers share. */
  ownSecret(): Promise<string>
  readonly clock: Clock
  readonly log: Log
}

interface SharedStores {
  readonly buckets: Buckets
  readonly cache: CacheStore
  readonly membership: IpcMembership
  readonly pubSub: PubSub
  readonly ttlStore: TtlStore
  /** Seals cursors and other tokens that clients hold. */
  readonly seal: Seal
  /** Whether the primary is responding. */
  readonly up: boolean
}

interface Family {
  /** The HELP and TYPE lines. */
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
      } else if (line !== '' && line !== '# EOF') family?.samples.push(labelled(line, number))
    }
  }
  const text = [...families.values()].flatMap(({ header, samples }) => [...header, ...samples])
  if (pages[0]?.body.endsWith('# EOF\n')) text.push('# EOF')
  return { contentType: pages[0]?.contentType ?? 'text/plain', body: text.map((line) => `${line}\n`).join('') }
}

/** Adds the `worker` label to a sample. Metric names do not contain braces, so the first brace starts the labels. */
function labelled(line: string, worker: number): string {
  const [, name = '', rest = ''] = /^([^{\s]+)(.*)$/.exec(line) ?? []
  const labels = rest.startsWith('{') ? `,${rest.slice(1)}` : `}${rest}`
  return `${name}{worker="${worker}"${labels}`
}
