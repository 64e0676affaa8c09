import cluster from 'node:cluster'
import type { TopicListeners } from '../core/pub-sub.ts'
import { ipcBuckets } from './ipc-buckets.ts'
import { ipcCache } from './ipc-cache.ts'
import { type IpcMembership, ipcMembership } from './ipc-membership.ts'
import { ipcPubSub } from './ipc-pub-sub.ts'
import { ipcTtlStore } from './ipc-ttl-store.ts'
import { createLine, type Line, type Port, usualMs } from './line.ts'
import { mergePages, type Page, type WorkerPage } from './merge-pages.ts'
import { type PrimaryAnswers, type Started, type WorkerAnswers, workerVariable } from './protocol.ts'
import type { Shared } from './shared.ts'

/** This process as one of several workers. */
export interface Worker {
  readonly shared: Shared
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
export function thisWorker(env: Readonly<Record<string, string | undefined>>): Worker | undefined {
  const { worker } = cluster
  const told = env[workerVariable]
  if (worker === undefined || told === undefined) return undefined
  const { name, number, of } = JSON.parse(told) as Started
  const stop = new AbortController()
  const gone = Promise.withResolvers<void>()
  let replaced = false
  let line: Line<PrimaryAnswers> | undefined
  let membership: IpcMembership | undefined
  let board: Pick<TopicListeners, 'deliver'> | undefined
  let page: ((accept?: string) => Page) | undefined

  // What is written to a channel whose other end has just gone is lost, which is told in a moment.
  worker.on('error', () => {})
  worker.on('disconnect', () => {
    // Otherwise the process would end at once, with calls under way.
    worker.exitedAfterDisconnect = true
    stop.abort()
    gone.resolve()
  })
  if (!worker.isConnected()) gone.resolve()

  const answers: WorkerAnswers = {
    members: (members) => membership?.heard(members),
    stop(byAnother) {
      replaced = byAnother
      stop.abort()
    },
    hear: (topic, text) => board?.deliver(topic, text),
    page: (accept) => page?.(accept),
  }

  const shared: Shared = {
    number,
    of,
    async open({ local, limits, ownSecret, clock, log }) {
      const secret = await ownSecret()
      const opened = createLine<PrimaryAnswers>({
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
        const all: WorkerPage[] = [...others, { number, ...own(accept) }]
        return mergePages(all.sort((a, b) => a.number - b.number))
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
