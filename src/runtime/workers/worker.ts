import cluster from 'node:cluster'
import type { Buckets } from '../../core/buckets.ts'
import type { CacheLimits, CacheStore } from '../../core/cache.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { PubSub, TopicListeners } from '../../core/pub-sub.ts'
import type { TtlStore } from '../../core/ttl-store.ts'
import { type IpcMembership, ipcBuckets, ipcCache, ipcMembership, ipcPubSub, ipcTtlStore } from './ipc-stores.ts'
import { createLine, type Line, type Port, usualMs } from './line.ts'
import {
  type MetricsPage,
  type PrimaryMethods,
  type WorkerIdentity,
  type WorkerMethods,
  type WorkerMetricsPage,
  workerVariable,
} from './protocol.ts'

/** This process as one of several workers. */
export interface WorkerProcess {
  readonly shared: SharedServices
  /** Aborted when it is to end: the first process says so, or is gone. */
  readonly stopped: AbortSignal
  /** Settles when the first process has ended. */
  readonly gone: Promise<void>
  /** Whether others go on in its place. */
  readonly replaced: boolean
  /** Tells that it takes requests. */
  listening(facts: unknown): void
}

/** More than the first process waits for the slowest of the others. */
const pagesMs = 3_000

/** Undefined in a process that is no worker. */
export function currentWorker(env: Readonly<Record<string, string | undefined>>): WorkerProcess | undefined {
  const { worker } = cluster
  const told = env[workerVariable]
  if (worker === undefined || told === undefined) return undefined
  const { name, number, of } = JSON.parse(told) as WorkerIdentity
  const stop = new AbortController()
  const gone = Promise.withResolvers<void>()
  let replaced = false
  let line: Line<PrimaryMethods> | undefined
  let membership: IpcMembership | undefined
  let board: Pick<TopicListeners, 'deliver'> | undefined
  let page: ((accept?: string) => MetricsPage) | undefined

  // What is written to a channel whose other end has just gone is lost, which is told in a moment.
  worker.on('error', () => {})
  worker.on('disconnect', () => {
    // Otherwise the process would end at once, with calls under way.
    worker.exitedAfterDisconnect = true
    stop.abort()
    gone.resolve()
  })
  if (!worker.isConnected()) gone.resolve()

  const answers: WorkerMethods = {
    members: (members) => membership?.heard(members),
    stop(byAnother) {
      replaced = byAnother
      stop.abort()
    },
    hear: (topic, text) => board?.deliver(topic, text),
    page: (accept) => page?.(accept),
  }

  const shared: SharedServices = {
    number,
    of,
    async open({ local, limits, ownSecret, clock, log }) {
      const secret = await ownSecret()
      const opened = createLine<PrimaryMethods>({
        port: toParent,
        answers,
        other: 'the first process',
        patienceMs: (name) => (name === 'pages' ? pagesMs : usualMs),
        clock,
        log,
      })
      line = opened
      membership = ipcMembership(opened, secret, name)
      const pubSub = ipcPubSub(opened, log)
      board = pubSub
      return {
        buckets: ipcBuckets(opened, local),
        cache: ipcCache(opened, limits),
        membership,
        pubSub,
        ttlStore: ipcTtlStore(opened),
        secret,
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
        const others = (await line?.ask('pages', accept)) ?? []
        const all: WorkerMetricsPage[] = [...others, { number, ...own(accept) }]
        return mergeMetrics(all.sort((a, b) => a.number - b.number))
      }
    },
  }
  return {
    shared,
    stopped: stop.signal,
    gone: gone.promise,
    get replaced() {
      return replaced
    },
    listening: (facts) => line?.tell('listening', facts),
  }
}

const toParent: Port = {
  send: (message) => process.connected && process.send?.(message),
  onMessage: (listener) => void process.on('message', listener),
}

/** What a gateway is given that is one of several workers: it shares with them what it would keep alone. */
export interface SharedServices {
  /** Which of them it is, from 1 on, and of how many. */
  readonly number: number
  readonly of: number
  open(options: SharedServicesOptions): Promise<SharedStores>
  /** The workers of this machine, once it is open. */
  readonly membership: IpcMembership | undefined
  /** Where the others reach this one. */
  join(address: string): Promise<void>
  /** The worker that answers people, so that whoever logs in is known to it the next time; undefined where it is this one. */
  lead(): string | undefined
  /** The metrics of all workers, from those of this one. */
  pages(own: (accept?: string) => MetricsPage): (accept?: string) => Promise<MetricsPage>
}

interface SharedServicesOptions {
  /** Counts while the first process does not answer. */
  readonly local: Buckets
  readonly limits: CacheLimits
  /** Of the state folder, which all workers share. */
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
  /** The secret that what callers hold is sealed with. */
  readonly secret: string
  /** Whether the first process answers. */
  readonly up: boolean
}

interface Family {
  /** What it is, and what kind of thing. */
  readonly about: Set<string>
  readonly samples: string[]
}

/**
 * One page of several: each value gets a label that says whose it is, and what belongs together stands together, as the
 * format wants it. Nothing is added up: whoever asks can do that, and whoever wants to know which one it is can, too.
 */
export function mergeMetrics(pages: readonly WorkerMetricsPage[]): MetricsPage {
  const families = new Map<string, Family>()
  const familyOf = (name: string): Family => {
    const family = families.get(name) ?? { about: new Set(), samples: [] }
    families.set(name, family)
    return family
  }
  for (const { number, body } of pages) {
    let family: Family | undefined
    for (const line of body.split('\n')) {
      const [, name] = /^# (?:HELP|TYPE) (\S+)/.exec(line) ?? []
      if (name !== undefined) {
        family = familyOf(name)
        family.about.add(line)
      } else if (line !== '' && line !== '# EOF') family?.samples.push(labelled(line, number))
    }
  }
  const text = [...families.values()].flatMap(({ about, samples }) => [...about, ...samples])
  if (pages[0]?.body.endsWith('# EOF\n')) text.push('# EOF')
  return { contentType: pages[0]?.contentType ?? 'text/plain', body: text.map((line) => `${line}\n`).join('') }
}

/** Names have no brace in them, and values follow the last one. */
function labelled(line: string, worker: number): string {
  const [, name = '', rest = ''] = /^([^{\s]+)(.*)$/.exec(line) ?? []
  const labels = rest.startsWith('{') ? `,${rest.slice(1)}` : `}${rest}`
  return `${name}{worker="${worker}"${labels}`
}
