import type { Caller } from '../core/call.ts'
import type { Language } from '../core/executor.ts'
import { codeTool, environmentAsked } from '../tools/code/environment.ts'
import type { World } from './world.ts'

/** Who calls which tool, and how. */
export type NamedIn = readonly [caller: Caller, tool: string, args: Readonly<Record<string, unknown>>]

/** The environment that a call of a tool names, by whichever spelling. Nobody waits for calls that name none. */
export function namedEnvironment(world: World, ...called: NamedIn): Promise<string | undefined> | undefined {
  const [, , args] = called
  return args.environment === undefined ? undefined : look(world, called)
}

async function look({ catalog, loaded }: World, [caller, tool, args]: NamedIn): Promise<string | undefined> {
  const view = catalog.view(caller)
  // What is no tool of theirs is refused where it is called.
  const { entry } = (await view.resolve('tool', tool).catch(() => undefined)) ?? {}
  if (entry?.server !== 'native' || entry.name !== codeTool) return undefined
  return environmentAsked(caller, args, loaded.config.sandbox.languages as readonly Language[])
}
