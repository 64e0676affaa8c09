import { type Capabilities, listProfile, profileOf } from '../../core/call.ts'
import type { ConnectionClient } from './client.ts'
import type { InitializedConnection } from './handshake.ts'
import { type ConnectionEvents, type ConnectionSettings, ManagedConnection } from './managed-connection.ts'
import { statelessKey } from './scope.ts'

export class PooledConnection extends ManagedConnection {
  readonly client: ConnectionClient

  constructor(client: ConnectionClient, settings: ConnectionSettings, events: ConnectionEvents) {
    super(settings, events)
    this.client = client
  }
}

export interface ConnectionState {
  readonly scope: ConnectionClient['scope']
  readonly pid: number | undefined
  readonly openedAt: number | undefined
  /** The principal for which it was opened, if it has one. */
  readonly principal: string | undefined
  readonly sessions: number
  readonly inUse: boolean
}

/** The connections to a server by the key of their scope. Those for one call, and those that are closing, have none. */
export class ConnectionTable {
  readonly byKey = new Map<string, PooledConnection>()
  readonly #unlisted = new Set<PooledConnection>()

  get all(): readonly PooledConnection[] {
    return [...this.byKey.values(), ...this.#unlisted]
  }

  get(key: string): PooledConnection | undefined {
    return this.byKey.get(key)
  }

  get stateless(): PooledConnection | undefined {
    return this.byKey.get(statelessKey)
  }

  /** The connections with one client each, and the spares. */
  get owned(): readonly PooledConnection[] {
    return this.#filter(({ isOwned }) => isOwned)
  }

  ofSession(session: string): readonly PooledConnection[] {
    return this.#filter(({ caller }) => caller?.session === session)
  }

  sparesFor(capabilities: Capabilities): readonly PooledConnection[] {
    const profile = profileOf(capabilities)
    return this.#filter((client) => client.scope === 'spare' && profileOf(client.capabilities) === profile)
  }

  /** The open connections whose lists clients with these capabilities may see. */
  listingFor(capabilities: Capabilities): readonly InitializedConnection[] {
    const profile = listProfile(capabilities)
    const same = this.#filter((client) => client.profile === profile)
    return same.flatMap(({ current }) => (current && current.principal === undefined ? [current] : []))
  }

  #filter(matches: (client: ConnectionClient) => boolean): PooledConnection[] {
    return [...this.byKey.values()].filter(({ client }) => matches(client))
  }

  /** Lists a connection under this key only. */
  list(managed: PooledConnection, key: string): void {
    const { client } = managed
    if (this.byKey.get(client.key) === managed) this.byKey.delete(client.key)
    client.key = key
    this.byKey.set(key, managed)
  }

  unlist(managed: PooledConnection): void {
    if (this.byKey.get(managed.client.key) === managed) this.byKey.delete(managed.client.key)
    this.#unlisted.add(managed)
  }

  /** Closes a connection. Closing takes a while, so the pool waits for it on disposal. */
  end(managed: PooledConnection): void {
    this.unlist(managed)
    void managed[Symbol.asyncDispose]().then(() => this.#unlisted.delete(managed))
  }

  /** Closes one of these that nobody uses: a spare, else the least recently used one, if possible without a session. */
  endUnused(connections: readonly PooledConnection[]): boolean {
    const rank = ({ client, sessions }: PooledConnection) =>
      client.scope === 'spare' ? 0 : sessions.size === 0 ? 1 : 2
    const unused = connections.filter((managed) => !managed.busy)
    const [least] = unused.sort((one, other) => rank(one) - rank(other) || one.lastUse - other.lastUse)
    if (least) this.end(least)
    return least !== undefined
  }

  /** The open connections, at most `limit`. */
  describe(limit: number): readonly ConnectionState[] {
    const open = this.all.filter(({ current }) => current)
    return open.slice(0, limit).map(({ client, current, openedAt, sessions, inUse }) => {
      const principal = client.caller?.principal ?? current?.principal
      const pid = current?.connection.transport.pid
      return { scope: client.scope, pid, openedAt, principal, sessions: sessions.size, inUse }
    })
  }
}
