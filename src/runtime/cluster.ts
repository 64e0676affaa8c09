import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { PubSub } from '../core/cluster.ts'
import type { Entry } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import type { Source } from '../core/source.ts'
import type { Breakers } from '../pipeline/breaker/breakers.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import type { Generation } from './generation.ts'
import type { ConfiguredServer } from './upstream-servers.ts'

export interface ClusterOptions {
  /** Undefined where there are no others. */
  readonly pubSub: PubSub | undefined
  readonly breakers: Pick<Breakers, 'onChange' | 'hint'>
  readonly current: CurrentServers
  /** Reads the configuration again, here alone. */
  reload(): Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/** What happens at one replica and concerns all of them (B10). */
export interface Cluster extends Disposable {
  /** Reads the configuration again, here and at all others; settles when that is done here. */
  reload(): Promise<void>
  /** Lets others know when what this server offers has changed. */
  readonly watch: ListBroadcast['watch']
}

export function createCluster({ pubSub, breakers, current, reload, clock, log }: ClusterOptions): Cluster {
  if (pubSub === undefined) return { reload, watch() {}, [Symbol.dispose]() {} }
  using open = new DisposableStack()
  const lists = open.use(createListBroadcast({ pubSub, current, clock, log }))
  open.use(
    pubSub.subscribe('reload', () => {
      log.info({}, 'another replica was told to reload, and so do we')
      void reload()
    }),
  )
  open.use(
    pubSub.subscribe('breaker', (text) => {
      const named = JSON.parse(text) as ServerReference
      if (findServer(named, current)) breakers.hint(named.server)
    }),
  )
  open.use(
    breakers.onChange((server, state) => {
      const transport = current().servers.get(server)?.builtFrom.config.transport
      const named = referenceTo(server, current)
      // A process of ours says nothing about those of others.
      if (state !== 'open' || !named || transport === undefined || transport === 'stdio') return
      pubSub.publish('breaker', JSON.stringify(named))
    }),
  )
  const listening = open.move()
  return {
    reload() {
      pubSub.publish('reload', '')
      return reload()
    },
    watch: lists.watch,
    [Symbol.dispose]: () => listening.dispose(),
  }
}

interface ListBroadcastOptions {
  readonly pubSub: PubSub
  readonly current: CurrentServers
  readonly clock: Clock
  readonly log: Log
}

/** Tells others of lists that have changed here, and asks servers whose lists have changed at others (F4, B10). */
interface ListBroadcast extends Disposable {
  watch(name: string, server: UpstreamServer): void
}

interface ListsMessage extends ServerReference {
  /** Digests of the lists as they are now: who has found them already need not ask. */
  readonly lists: readonly string[]
}

/** Many replicas tell of one change, and a server may tell each of them by itself, which is better. */
const gatherMs = 250

function createListBroadcast({ pubSub, current, clock, log }: ListBroadcastOptions): ListBroadcast {
  const changed = createListTracker()
  /** What was told and is not looked into yet, by server. */
  const told = new Map<string, Set<string>>()
  const timers = new Map<string, Disposable>()
  /** Those that are asked because of what others told: what comes of it they know. */
  const asked = new Set<UpstreamServer>()

  const lookSoon = (news: ServerReference) => {
    timers.set(
      news.server,
      clock.after(gatherMs, () => void look(news)),
    )
  }

  const look = async (news: ServerReference) => {
    const { server, builtFrom } = findServer(news, current) ?? {}
    // What is told while it answers may be newer than the answer.
    if (server && asked.has(server)) return lookSoon(news)
    const lists = told.get(news.server) ?? new Set()
    told.delete(news.server)
    timers.delete(news.server)
    if (!server) return
    // A process that sleeps is not woken for this; it is asked when it wakes.
    if (builtFrom?.config.transport === 'stdio' && server.control.connections === 0) return
    const others = changed.others(server, lists)
    if (others.length === 0) return
    log.debug({ server: server.name }, 'a list has changed at another replica: the server is asked again')
    asked.add(server)
    await Promise.all(others.map((source) => source.refresh()))
    asked.delete(server)
  }

  const hearing = pubSub.subscribe('lists', (text) => {
    const news = JSON.parse(text) as ListsMessage
    if (!findServer(news, current)) return
    const lists = told.get(news.server) ?? new Set()
    for (const list of news.lists) lists.add(list)
    told.set(news.server, lists)
    if (!timers.has(news.server)) lookSoon(news)
  })

  return {
    watch(name, server) {
      server.onChange(() => {
        const lists = changed.changed(server)
        const named = referenceTo(name, current)
        // One that another configuration has taken the place of has nothing to say any more.
        const ours = current().servers.get(name)?.server === server
        if (lists.length === 0 || !named || !ours || asked.has(server)) return
        pubSub.publish('lists', JSON.stringify({ ...named, lists } satisfies ListsMessage))
      })
    },
    [Symbol.dispose]() {
      hearing[Symbol.dispose]()
      for (const timer of timers.values()) timer[Symbol.dispose]()
      timers.clear()
    },
  }
}

/** The configuration in force. */
export type CurrentServers = () => Pick<Generation, 'servers' | 'origins'>

/** A server as replicas speak of it to one another. */
interface ServerReference {
  readonly server: string
  /** A digest of where it comes from: under the same name another replica may have another one. */
  readonly origin: string
}

/** How others are told of a server of ours. */
function referenceTo(server: string, current: CurrentServers): ServerReference | undefined {
  const origin = current().origins.get(server)
  return origin && { server, origin: origin.hash }
}

/** The server of ours that another replica speaks of; undefined where it has one that we do not have. */
function findServer({ server, origin }: ServerReference, current: CurrentServers): ConfiguredServer | undefined {
  return current().origins.get(server)?.hash === origin ? current().servers.get(server) : undefined
}

/** Knows what lists of servers looked like, for each kind of client that sees one of its own. */
interface ListTracker {
  /** Digests of the lists that are not what they were at the last look; one that is seen first has not changed. */
  changed(server: UpstreamServer): readonly string[]
  /** The server as those kinds of clients see it whose list is none of these. */
  others(server: UpstreamServer, lists: ReadonlySet<string>): readonly Source[]
}

function createListTracker(): ListTracker {
  const seen = new WeakMap<UpstreamServer, ReadonlyMap<string, string>>()
  return {
    changed(server) {
      // One that an operator has turned off here offers nothing here: that is no news of the server.
      if (server.control.paused) return []
      const before = seen.get(server)
      const now = new Map([...server.kinds()].map(([kind, source]) => [kind, digestOf(source.entries())]))
      seen.set(server, now)
      return [...now].filter(([kind, list]) => (before?.get(kind) ?? list) !== list).map(([, list]) => list)
    },
    others: (server, lists) => [...server.kinds().values()].filter((source) => !lists.has(digestOf(source.entries()))),
  }
}

const digests = new WeakMap<readonly Entry[], string>()

/** A list is the same array until it is another list. */
function digestOf(entries: readonly Entry[]): string {
  const known = digests.get(entries)
  if (known !== undefined) return known
  const hash = createHash('sha256')
  for (const { kind, definition } of entries) hash.update(JSON.stringify([kind, definition]))
  const digest = hash.digest('base64url').slice(0, 16)
  digests.set(entries, digest)
  return digest
}
