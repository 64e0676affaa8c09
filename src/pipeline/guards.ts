import type { Interceptor } from '../core/call.ts'
import { onceFree } from './once-free.ts'

/** Refuses paths, statements and addresses that an argument must not hold; a promise where that takes a while. */
export type Check = (args: Readonly<Record<string, unknown>>) => Promise<void> | undefined

/** Looks at the arguments that a server's guards name (F9), those of prompts as well as of tools. */
export const guards = (checks: ReadonlyMap<string, Check>): Interceptor =>
  onceFree(({ entry, input }) => checks.get(entry.server)?.(input.arguments.value))
