import type { World } from './world.ts'

/** Closes what a world has and none of those that still live has taken over. */
export async function endWorld({ catalog, servers, entrance, pins, traces }: World, living: readonly World[]) {
  catalog[Symbol.dispose]()
  const gone = [...servers.values()].filter((one) => !living.some((world) => [...world.servers.values()].includes(one)))
  // All at once: each may have a stubborn process to wait for.
  await Promise.all(gone.map(({ server }) => server[Symbol.asyncDispose]()))
  if (!living.some((world) => world.entrance === entrance)) await entrance.authenticate[Symbol.asyncDispose]()
  if (!living.some((world) => world.pins === pins)) await pins[Symbol.asyncDispose]()
  if (!living.some((world) => world.traces === traces)) await traces?.[Symbol.asyncDispose]()
}
