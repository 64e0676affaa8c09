import { type Capabilities, profileOf } from '../../core/capabilities.ts'
import type { ManagedConnection } from './managed-connection.ts'

/** Lines that wait for the caller they will belong to, so that being alone on a line is not slow. */
export interface WarmPool {
  /** A line for one caller alone. */
  take(capabilities: Capabilities): ManagedConnection
  /** A line to look at the server through; it stays a spare. */
  peek(capabilities: Capabilities): ManagedConnection
  /** It has found another use. */
  forget(managed: ManagedConnection): void
  readonly all: Iterable<ManagedConnection>
}

const never = new AbortController().signal

export function createWarmPool(count: number, create: (capabilities: Capabilities) => ManagedConnection): WarmPool {
  const waiting = new Map<string, ManagedConnection[]>()

  const of = (capabilities: Capabilities): ManagedConnection[] => {
    const profile = profileOf(capabilities)
    const connections = waiting.get(profile) ?? []
    waiting.set(profile, connections)
    return connections
  }

  return {
    take(capabilities) {
      const connections = of(capabilities)
      // Not one that is held to follow or list something, or whose server has asked for roots when nobody could tell.
      const free = connections.findIndex(
        (managed) => !managed.busy && !managed.current?.connection.hadUnroutableRequest,
      )
      const taken = (free < 0 ? undefined : connections.splice(free, 1)[0]) ?? create(capabilities)
      while (connections.length < count) {
        const spare = create(capabilities)
        connections.push(spare)
        // One that does not open now is tried again by whoever takes it.
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
