import type { Tended } from '../world/servers.ts'
import type { World } from '../world/world.ts'

/** The configuration in force. */
export type Present = () => Pick<World, 'servers' | 'origins'>

/** A server as replicas speak of it to one another. */
export interface NamedServer {
  readonly server: string
  /** A digest of where it comes from: under the same name another replica may have another one. */
  readonly origin: string
}

/** How others are told of a server of ours. */
export function nameFor(server: string, present: Present): NamedServer | undefined {
  const origin = present().origins.get(server)
  return origin && { server, origin: origin.hash }
}

/** The server of ours that another replica speaks of; undefined where it has one that we do not have. */
export function serverNamed({ server, origin }: NamedServer, present: Present): Tended | undefined {
  return present().origins.get(server)?.hash === origin ? present().servers.get(server) : undefined
}
