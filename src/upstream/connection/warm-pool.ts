import { type Capabilities, profileOf } from '../../core/call.ts'
import { never } from '../../core/deadline.ts'
import type { ManagedConnection } from './managed-connection.ts'

/** Open connections in reserve (`spares`), so that callers that need their own connection do not have to wait. */
export interface WarmPool {
  /** Takes a connection out of the pool, for one caller only. Creates one if none suits a caller that prefers a session. */
  take(capabilities: Capabilities, prefersSession?: boolean): ManagedConnection
  /** A connection for fetching the listing; it stays in the pool. */
  peek(capabilities: Capabilities): ManagedConnection
  forget(managed: ManagedConnection): void
  readonly all: Iterable<ManagedConnection>
}

export interface WarmPoolOptions {
  /** How many connections to keep open for each client profile. */
  readonly count: number
  create(capabilities: Capabilities, prefersSession?: boolean): ManagedConnection
  close(managed: ManagedConnection): void
}

/** For how many client profiles to keep connections. Clients choose their capabilities, so there can be any number. */
const maxProfiles = 16

export function createWarmPool({ count, create, close }: WarmPoolOptions): WarmPool {
  /** The connections by client profile, least recently used first. */
  const waiting = new Map<string, ManagedConnection[]>()

  const of = (capabilities: Capabilities): ManagedConnection[] => {
    const profile = profileOf(capabilities)
    const connections = waiting.get(profile) ?? []
    waiting.delete(profile)
    waiting.set(profile, connections)
    if (waiting.size > maxProfiles) dropUnused(profile)
    return connections
  }

  const dropUnused = (except: string) => {
    const isUnused = (connections: ManagedConnection[]) => !connections.some(({ busy }) => busy)
    const least = [...waiting].find(([profile, connections]) => profile !== except && isUnused(connections))
    if (!least) return
    const [profile, connections] = least
    waiting.delete(profile)
    connections.forEach(close)
  }

  return {
    take(capabilities, prefersSession) {
      const connections = of(capabilities)
      // Skip connections that are in use, and those whose server asked for roots before there was a caller.
      const free = connections.findIndex(
        ({ busy, current }) =>
          !busy &&
          !current?.connection.hadUnroutableRequest &&
          (!prefersSession || current?.handshake.era === 'legacy'),
      )
      const taken = (free < 0 ? undefined : connections.splice(free, 1)[0]) ?? create(capabilities, prefersSession)
      while (connections.length < count) {
        const spare = create(capabilities)
        connections.push(spare)
        // Ignore a failure: when a caller takes this connection, another attempt is made.
        spare.open(never).catch(() => {})
      }
      return taken
    },
    peek(capabilities) {
      const connections = of(capabilities)
      connections[0] ??= create(capabilities)
      return connections[0]
    },
    forget(managed) {
      for (const connections of waiting.values())
        if (connections.includes(managed)) connections.splice(connections.indexOf(managed), 1)
    },
    get all() {
      return [...waiting.values()].flat()
    },
  }
}
