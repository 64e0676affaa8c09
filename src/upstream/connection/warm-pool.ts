import { type Capabilities, profileOf } from '../../core/call.ts'
import { never } from '../../core/deadline.ts'
import type { ManagedConnection } from './managed-connection.ts'

/** Open connections in reserve (`spares`), so that callers that need their own connection do not have to wait. */
export interface WarmPool {
  /** Takes a connection out of the pool, for one caller only. Creates one if none suits the caller. */
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

  /** Spares for callers that prefer a session, of a server that opens no sessions without being asked for one. */
  const forSessions = new WeakSet<ManagedConnection>()

  const suits = (managed: ManagedConnection, prefersSession: boolean): boolean => {
    const { current, opening } = managed
    const isForSessions = forSessions.has(managed)
    if (!prefersSession) return !isForSessions || current?.handshake.era === 'modern'
    // One that is not open yet opens as its caller prefers.
    return current ? current.handshake.era === 'legacy' : isForSessions || !opening
  }

  const fill = (connections: ManagedConnection[], capabilities: Capabilities, prefersSession: boolean) => {
    const isStateless = ({ current }: ManagedConnection) => current?.handshake.era === 'modern'
    const asks = prefersSession && connections.some(isStateless)
    const isSpare = (managed: ManagedConnection) => suits(managed, prefersSession) || managed.opening
    for (let spares = connections.filter(isSpare).length; spares < count; spares++) {
      const spare = create(capabilities, asks)
      if (asks) forSessions.add(spare)
      connections.push(spare)
      // Ignore a failure: when a caller takes this connection, another attempt is made.
      spare.open(never).catch(() => {})
    }
  }

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
    take(capabilities, prefersSession = false) {
      const connections = of(capabilities)
      // Skip connections that are in use, and those whose server asked for roots before there was a caller.
      const free = connections.findIndex(
        (managed) =>
          !managed.busy && !managed.current?.connection.hadUnroutableRequest && suits(managed, prefersSession),
      )
      const taken = (free < 0 ? undefined : connections.splice(free, 1)[0]) ?? create(capabilities, prefersSession)
      fill(connections, capabilities, prefersSession)
      return taken
    },
    peek(capabilities) {
      const connections = of(capabilities)
      const known = connections.find((managed) => !forSessions.has(managed))
      if (known) return known
      const created = create(capabilities)
      connections.push(created)
      return created
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
