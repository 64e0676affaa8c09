import { randomUUID } from 'node:crypto'
import type { PubSub } from '../core/cluster.ts'
import { jsonValue } from '../json/parse-json.ts'
import type { Breakers } from '../pipeline/breaker.ts'
import { listDigest } from '../upstream/listing/server-listing.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import type { Generation } from './generation.ts'
import type { ProcessState } from './process-state.ts'
import { type ConfiguredServer, createListTracker } from './upstream-servers.ts'

export interface ClusterOptions extends Pick<ProcessState, 'pubSub' | 'workers' | 'clock' | 'log'> {
  readonly breakers: Pick<Breakers, 'onChange' | 'hint' | 'forget'>
  readonly current: CurrentServers
  /** Reloads in this process only. */
  reload(): Promise<void>
  /** Reads the key file of this process again. */
  readKeys(): void
}

export type ServerAction = 'restart' | 'enable' | 'disable' | 'refresh'

type ControlMessage =
  /** `to`: the only worker that the message is for. */
  | (ServerReference & { readonly action: ServerAction; readonly to?: string | undefined })
  /** Asks for the servers that are disabled, because the sender has just started. */
  | { readonly from: string }

interface ListsMessage extends ServerReference {
  /** Digests of the new lists. A replica that already has the same lists need not refresh. */
  readonly lists: readonly string[]
}

/** Delay before a refresh: several replicas may report a change, and the server often notifies each replica itself. */
const listDebounceMs = 250

/**
 * Keeps replicas and workers in sync (B10): reloads, open breakers and changed lists are published to all of them, changed
 * keys and an operator's actions on servers to the other workers of the same gateway.
 */
export class Cluster implements Disposable {
  readonly #options: ClusterOptions
  readonly #self = randomUUID()
  readonly #subscriptions = new DisposableStack()
  /** For each server, the digests of lists that have been received but not handled yet, and when they will be. */
  readonly #received = new Map<string, { readonly lists: ReadonlySet<string>; readonly timer: Disposable }>()
  /** Servers being refreshed because of a message. Other replicas have their changes, so do not publish them. */
  readonly #refreshing = new Set<UpstreamServer>()

  constructor(options: ClusterOptions) {
    this.#options = options
    const { pubSub, workers, breakers, log } = options
    if (pubSub === undefined) return
    const subscribe = <Message>(to: PubSub, topic: string, receive: (message: Message) => void) =>
      this.#subscriptions.use(to.subscribe(topic, (text) => receive(jsonValue(text) as Message)))
    this.#subscriptions.use(
      pubSub.subscribe('reload', () => {
        log.info({}, 'reloading because another replica reloaded')
        void options.reload()
      }),
    )
    subscribe<ServerReference>(pubSub, 'breaker', (named) => this.#find(named) && breakers.hint(named.server))
    subscribe<ListsMessage>(pubSub, 'lists', (message) => this.#receiveLists(message))
    this.#subscriptions.use(
      breakers.onChange((server, state) => {
        const transport = options.current().servers.get(server)?.builtFrom.config.transport
        const named = this.#referenceTo(server)
        // Each replica runs its own process for a stdio server, so a failure there says nothing about other replicas.
        if (state !== 'open' || !named || transport === undefined || transport === 'stdio') return
        pubSub.publish('breaker', JSON.stringify(named))
      }),
    )
    if (workers === undefined) return
    this.#subscriptions.use(workers.subscribe('keys', options.readKeys))
    subscribe<ControlMessage>(workers, 'control', (message) => this.#receiveControl(message))
    workers.publish('control', JSON.stringify({ from: this.#self } satisfies ControlMessage))
  }

  /** Reloads in all processes. Settles when the reload in this process is done. */
  reload(): Promise<void> {
    this.#options.pubSub?.publish('reload', '')
    return this.#options.reload()
  }

  keysChanged(): void {
    this.#options.workers?.publish('keys', '')
    this.#options.readKeys()
  }

  /**
   * Performs an action on a server, `refresh` only here, others in all workers: the admin API is served by one of them,
   * so the operator could neither see nor repeat them elsewhere. Settles when it is done here.
   */
  control(server: string, action: ServerAction): Promise<void> {
    // A list that changes is published anyway.
    if (action !== 'refresh') this.#sendControl(server, action)
    return this.#perform(server, action)
  }

  async #perform(name: string, action: ServerAction): Promise<void> {
    const server = this.#options.current().servers.get(name)?.server
    if (server) await serverActions[action](server, this.#options.breakers)
  }

  #sendControl(name: string, action: ServerAction, to?: string): void {
    const named = this.#referenceTo(name)
    if (named) this.#options.workers?.publish('control', JSON.stringify({ ...named, action, to }))
  }

  #receiveControl(message: ControlMessage): void {
    const { current, log } = this.#options
    if ('from' in message) {
      for (const [name, { server }] of current().servers)
        if (server.control.paused) this.#sendControl(name, 'disable', message.from)
      return
    }
    const { server: name, action, to = this.#self } = message
    const found = this.#find(message)
    if (to !== this.#self || !found || (action === 'disable' && found.server.control.paused)) return
    log.info({ server: name, action }, 'an operator used another worker to control a server')
    this.#perform(name, action).catch((cause: unknown) =>
      log.warn({ server: name, action, err: cause }, 'it failed here'),
    )
  }

  /** Publishes a server's lists whenever they change (F4). */
  watch(name: string, server: UpstreamServer): void {
    const { pubSub, current } = this.#options
    if (pubSub === undefined) return
    const changedLists = createListTracker(server)
    server.onChange(() => {
      // If an operator has paused the server, do not publish its lists: they are empty in this process only.
      const lists = server.control.paused ? [] : changedLists()
      const named = this.#referenceTo(name)
      // Ignore changes from a server that a reload has replaced.
      const isCurrent = current().servers.get(name)?.server === server
      if (lists.length === 0 || !named || !isCurrent || this.#refreshing.has(server)) return
      pubSub.publish('lists', JSON.stringify({ ...named, lists } satisfies ListsMessage))
    })
  }

  #receiveLists(message: ListsMessage): void {
    const { server, lists } = message
    if (!this.#find(message)) return
    const known = this.#received.get(server)
    const timer = known?.timer ?? this.#refreshSoon(message)
    this.#received.set(server, { lists: new Set(lists).union(known?.lists ?? new Set()), timer })
  }

  #refreshSoon(reference: ServerReference): Disposable {
    return this.#options.clock.after(listDebounceMs, () => void this.#refresh(reference))
  }

  async #refresh(reference: ServerReference): Promise<void> {
    const { server, builtFrom } = this.#find(reference) ?? {}
    const { lists = new Set<string>() } = this.#received.get(reference.server) ?? {}
    // A refresh is already running. Refresh again later: the lists may have changed after that refresh read them.
    if (server && this.#refreshing.has(server)) {
      this.#received.set(reference.server, { lists, timer: this.#refreshSoon(reference) })
      return
    }
    this.#received.delete(reference.server)
    if (!server) return
    // Do not start an idle process just to refresh its lists; they are refreshed when it starts.
    if (builtFrom?.config.transport === 'stdio' && server.control.connections === 0) return
    const others = [...server.kinds().values()].filter((source) => !lists.has(listDigest(source.entries())))
    if (others.length === 0) return
    this.#options.log.debug({ server: server.name }, 'refreshing lists that changed on another replica')
    this.#refreshing.add(server)
    await Promise.all(others.map((source) => source.refresh()))
    this.#refreshing.delete(server)
  }

  #referenceTo(server: string): ServerReference | undefined {
    const origin = this.#options.current().origins.get(server)
    return origin && { server, origin: origin.hash }
  }

  #find({ server, origin }: ServerReference): ConfiguredServer | undefined {
    const { servers, origins } = this.#options.current()
    return origins.get(server)?.hash === origin ? servers.get(server) : undefined
  }

  [Symbol.dispose](): void {
    this.#subscriptions.dispose()
    for (const { timer } of this.#received.values()) timer[Symbol.dispose]()
    this.#received.clear()
  }
}

const serverActions: Readonly<
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

export type CurrentServers = () => Pick<Generation, 'servers' | 'origins'>

interface ServerReference {
  readonly server: string
  /** A digest of the server's command or URL, because another replica may have a different server with this name. */
  readonly origin: string
}
