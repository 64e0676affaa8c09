import type { World } from './world.ts'

/** Closes what a world has and none of those that still live has taken over. */
export async function endWorld(world: World, living: readonly World[]) {
  const { catalog, servers, entrance, pins, traces, chat, models, executor, plugins } = world
  catalog[Symbol.dispose]()
  await chat[Symbol.asyncDispose]()
  const gone = [...servers.values()].filter((one) => !living.some((world) => [...world.servers.values()].includes(one)))
  // All at once: each may have a stubborn process to wait for.
  await Promise.all(gone.map(({ server }) => server[Symbol.asyncDispose]()))
  for (const key of ['models', 'executor', 'plugins'] as const) {
    const { value } = { models, executor, plugins }[key]
    if (!living.some((other) => other[key].value === value)) await value[Symbol.asyncDispose]()
  }
  if (!living.some((world) => world.entrance === entrance)) await entrance.authenticate[Symbol.asyncDispose]()
  if (!living.some((world) => world.pins === pins)) await pins[Symbol.asyncDispose]()
  if (!living.some((world) => world.traces === traces)) await traces?.[Symbol.asyncDispose]()
}
