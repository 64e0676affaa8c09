import { randomUUID } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { PubSub } from '../core/cluster.ts'
import type { Log } from '../core/log.ts'
import { jsonValue } from '../json/parse-json.ts'
import type { Breakers } from '../pipeline/breaker.ts'
import { listDigest } from '../upstream/listing/server-listing.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import type { Generation } from './generation.ts'
import { type ConfiguredServer, createListTracker } from './upstream-servers.ts'

export interface ClusterOptions {
  /** Messages to and from other processes; undefined if this is the only process. */
  readonly pubSub: PubSub | undefined
  /** Messages to and from the other workers of this gateway only; undefined if this process is not a worker. */
  readonly workers: PubSub | undefined
  readonly breakers: Pick<Breakers, 'onChange' | 'hint' | 'forget'>
  readonly current: CurrentServers
  /** Reloads in this process only. */
  reload(): Promise<void>
  /** Reads the key file of this process again. */
  readKeys(): void
  readonly clock: Clock
  readonly log: Log
}

/** What an operator can do with a server. */
export type ServerAction = 'restart' | 'enable' | 'disable' | 'refresh'

/**
 * Keeps replicas and workers in sync (B10): reloads, open breakers and changed lists are published to all of them, changed
 * keys and an operator's actions on servers to the other workers of the same gateway.
 */
export interface Cluster extends Disposable {
  /** Reloads in all processes. Settles when the reload in this process is done. */
  reload(): Promise<void>
  /** Performs an action on a server, `refresh` only here, others in all workers. Settles when it is done here. */
  control(server: string, action: ServerAction): Promise<void>
  /** Applies a change of the key file, in all workers. */
  keysChanged(): void
  /** Publishes a server's lists whenever they change. */
  watch(name: string, server: UpstreamServer): void
}

export function createCluster(options: ClusterOptions): Cluster {
  const { pubSub, workers, breakers, current, reload, readKeys, clock, log } = options
  const perform = async (name: string, action: ServerAction) => {
    const server = current().servers.get(name)?.server
    if (server) await actions[action](server, breakers)
  }
  if (pubSub === undefined)
    return { reload, control: perform, keysChanged: readKeys, watch() {}, [Symbol.dispose]() {} }
  using open = new DisposableStack()
  const controls = open.use(workers && createControlBroadcast({ workers, current, perform, log }))
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
  const keys = workers?.subscribe('keys', readKeys)
  for (const subscription of [reloading, hints, changes, keys]) open.use(subscription)
  const listening = open.move()
  return {
    reload() {
      pubSub.publish('reload', '')
      return reload()
    },
    control(server, action) {
      controls?.publish(server, action)
      return perform(server, action)
    },
    keysChanged() {
      workers?.publish('keys', '')
      readKeys()
    },
    watch: lists.watch,
    [Symbol.dispose]: () => listening.dispose(),
  }
}

const actions: Readonly<
  Record<ServerAction, (server: UpstreamServer, breakers: Pick<Breakers, 'forget'>) => Promise<unknown>>
> = {
  restart({ name, control }, breakers) {
    // Forget earlier failures, because the operator may have fixed the cause.
    breakers.forget(name)
    return control.restart()
  },
  async enable({ control }) {
    control.resume()
  },
  disable: ({ control }) => control.pause(),
  // Refresh the list for each kind of client: the server may offer each kind a different list.
  refresh: (server) => Promise.all([server, ...server.kinds().values()].map((kind) => kind.refresh())),
}

type ControlMessage =
  /** `to`: the only worker that the message is for. */
  | (ServerReference & { readonly action: ServerAction; readonly to?: string | undefined })
  /** Asks for the servers that are disabled, because the sender has just started. */
  | { readonly from: string }

interface ControlBroadcastOptions extends Pick<ClusterOptions, 'current' | 'log'> {
  readonly workers: PubSub
  perform(server: string, action: ServerAction): Promise<void>
}

/**
 * Publishes an operator's actions to the other workers: the admin API is served by one of them, so the operator could
 * neither see nor repeat them elsewhere. A replica has an admin API of its own.
 */
function createControlBroadcast({ workers, current, perform, log }: ControlBroadcastOptions) {
  const self = randomUUID()
  const send = (name: string, action: ServerAction, to?: string) => {
    const named = referenceTo(name, current)
    if (named) workers.publish('control', JSON.stringify({ ...named, action, to } satisfies ControlMessage))
  }
  const subscription = workers.subscribe('control', (text) => {
    const message = jsonValue(text) as ControlMessage
    if ('from' in message) {
      for (const [name, { server }] of current().servers) if (server.control.paused) send(name, 'disable', message.from)
      return
    }
    const { server: name, action, to = self } = message
    const found = findServer(message, current)
    if (to !== self || !found || (action === 'disable' && found.server.control.paused)) return
    log.info({ server: name, action }, 'an operator used another worker to control a server')
    perform(name, action).catch((cause: unknown) => log.warn({ server: name, action, err: cause }, 'it failed here'))
  })
  workers.publish('control', JSON.stringify({ from: self } satisfies ControlMessage))
  return {
    publish(name: string, action: ServerAction) {
      // A list that changes is published anyway.
      if (action !== 'refresh') send(name, action)
    },
    [Symbol.dispose]: () => subscription[Symbol.dispose](),
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
function createListBroadcast(options: ListBroadcastOptions): Pick<Cluster, 'watch'> & Disposable {
  const { pubSub, current, clock, log } = options
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
