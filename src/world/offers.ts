import type { Offers } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import { withoutHidden } from '../core/hidden-characters.ts'
import { type Advice, joinOffers } from '../upstream/offers.ts'
import type { Server } from '../upstream/server.ts'
import { serversOf } from './servers.ts'
import type { World } from './world.ts'

/** What the servers of a world offer a caller beside entries; those that it may use nothing of offer it nothing. */
export const offersTo = (caller: Caller, world: World): Offers =>
  joinOffers(
    serversOf(world)
      .filter((server) => mayUseSome(caller, server, world))
      .map((server) => advice(server, world)),
  )

/** Instructions that are quarantined are as good as none. */
function advice({ name, capabilities, instructions }: Server, { pins }: World): Advice {
  const { usable } = pins.checkServer(name, instructions)
  return { name, capabilities, instructions: usable ? withoutHidden(instructions) : '' }
}

function mayUseSome(caller: Caller, server: Server, { policy: { decide, closed } }: World): boolean {
  const entries = server.entries()
  if (entries.length === 0) return closed(caller, server.name) === undefined
  return entries.some((entry) => decide(caller, entry).allowed)
}
