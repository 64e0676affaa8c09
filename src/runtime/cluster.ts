import type { Clock } from '../core/clock.ts'
import type { PubSub } from '../core/cluster.ts'
import type { Log } from '../core/log.ts'
import { jsonValue } from '../lib/parse-json.ts'
import type { Breakers } from '../pipeline/breaker.ts'
import { listDigest } from '../upstream/listing/server-listing.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import type { Generation } from './generation.ts'
import { type ConfiguredServer, createListTracker } from './upstream-servers.ts'

export interface ClusterOptions {
  /** Messages to and from other processes; undefined if this is the only process. */
  readonly pubSub: PubSub | undefined
  readonly breakers: Pick<Breakers, 'onChange' | 'hint'>
  readonly current: CurrentServers
  /** Reloads in this process only. */
  reload(): Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/** Keeps replicas and workers in sync (B10): reloads, open breakers and changed lists are published to all of them. */
export interface Cluster extends Disposable {
  /** Reloads in all processes. Settles when the reload in this process is done. */
  reload(): Promise<void>
  /** Publishes a server's lists whenever they change. */
  watch(name: string, server: UpstreamServer): void
}

export function createCluster({ pubSub, breakers, current, reload, clock, log }: ClusterOptions): Cluster {
  if (pubSub === undefined) return { reload, watch() {}, [Symbol.dispose]() {} }
  using open = new DisposableStack()
  const lists = open.use(createListBroadcast({ pubSub, current, clock, log }))
  const reloading = pubSub.subscribe('reload', () => {
    log.info({}, 'reloading because another replica reloaded')
    void reload()
  })
  const hints = pubSub.subscribe('breaker', (text) => {
    const named = jsonValue(text) as ServerReference
    if (findServer(named, current)) breakers.hint(named.server)
  })
  const changes = breakers.onChange((server, state) => {
    const transport = current().servers.get(server)?.builtFrom.config.transport
    const named = referenceTo(server, current)
    // Each replica runs its own process for a stdio server, so a failure there says nothing about other replicas.
    if (state !== 'open' || !named || transport === undefined || transport === 'stdio') return
    pubSub.publish('breaker', JSON.stringify(named))
  })
  for (const subscription of [reloading, hints, changes]) open.use(subscription)
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

interface ListsMessage extends ServerReference {
  /** Digests of the new lists. A replica that already has the same lists need not refresh. */
  readonly lists: readonly string[]
}

/** Delay before a refresh: several replicas may report a change, and the server often notifies each replica itself. */
const debounceMs = 250

interface ListBroadcastOptions extends Pick<ClusterOptions, 'current' | 'clock' | 'log'> {
  readonly pubSub: PubSub
}

/** Publishes lists that changed in this process, and refreshes servers whose lists changed in another (F4, B10). */
function createListBroadcast({ pubSub, current, clock, log }: ListBroadcastOptions): Omit<Cluster, 'reload'> {
  /** For each server, the digests that have been received but not handled yet. */
  const received = new Map<string, Set<string>>()
  const timers = new Map<string, Disposable>()
  /** Servers being refreshed because of a message. Other replicas have their changes, so do not publish them. */
  const refreshing = new Set<UpstreamServer>()

  const refreshSoon = (reference: ServerReference) => {
    const timer = clock.after(debounceMs, () => void refresh(reference))
    timers.set(reference.server, timer)
  }

  const refresh = async (reference: ServerReference) => {
    const { server, builtFrom } = findServer(reference, current) ?? {}
    // A refresh is already running. Refresh again later: the lists may have changed after that refresh read them.
    if (server && refreshing.has(server)) return refreshSoon(reference)
    const lists = received.get(reference.server) ?? new Set()
    received.delete(reference.server)
    timers.delete(reference.server)
    if (!server) return
    // Do not start an idle process just to refresh its lists; they are refreshed when it starts.
    if (builtFrom?.config.transport === 'stdio' && server.control.connections === 0) return
    const others = [...server.kinds().values()].filter((source) => !lists.has(listDigest(source.entries())))
    if (others.length === 0) return
    log.debug({ server: server.name }, 'refreshing lists that changed on another replica')
    refreshing.add(server)
    await Promise.all(others.map((source) => source.refresh()))
    refreshing.delete(server)
  }

  const subscription = pubSub.subscribe('lists', (text) => {
    const message = jsonValue(text) as ListsMessage
    if (!findServer(message, current)) return
    const lists = received.get(message.server) ?? new Set()
    for (const list of message.lists) lists.add(list)
    received.set(message.server, lists)
    if (!timers.has(message.server)) refreshSoon(message)
  })

  return {
    watch(name, server) {
      const changedLists = createListTracker(server)
      server.onChange(() => {
        // If an operator has paused the server, do not publish its lists: they are empty in this process only.
        const lists = server.control.paused ? [] : changedLists()
        const named = referenceTo(name, current)
        // Ignore changes from a server that a reload has replaced.
        const isCurrent = current().servers.get(name)?.server === server
        if (lists.length === 0 || !named || !isCurrent || refreshing.has(server)) return
        pubSub.publish('lists', JSON.stringify({ ...named, lists } satisfies ListsMessage))
      })
    },
    [Symbol.dispose]() {
      subscription[Symbol.dispose]()
      for (const timer of timers.values()) timer[Symbol.dispose]()
      timers.clear()
    },
  }
}

export type CurrentServers = () => Pick<Generation, 'servers' | 'origins'>

interface ServerReference {
  readonly server: string
  /** A digest of the server's command or URL, because another replica may have a different server with this name. */
  readonly origin: string
}

function referenceTo(server: string, current: CurrentServers): ServerReference | undefined {
  const origin = current().origins.get(server)
  return origin && { server, origin: origin.hash }
}

/** Finds the referenced server; undefined if this replica does not have the same one. */
function findServer({ server, origin }: ServerReference, current: CurrentServers): ConfiguredServer | undefined {
  return current().origins.get(server)?.hash === origin ? current().servers.get(server) : undefined
}
