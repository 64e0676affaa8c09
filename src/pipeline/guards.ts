import type { Interceptor } from '../core/call.ts'
import { onceFree } from './once-free.ts'

/** Refuses paths, statements and addresses that an argument must not hold; a promise where that takes a while. */
export type Check = (args: Readonly<Record<string, unknown>>) => Promise<void> | undefined

/** Looks at the arguments that a server's guards name (F9). */
export const guards = (checks: ReadonlyMap<string, Check>): Interceptor => {
  return onceFree((call) => {
    const check = call.entry.kind === 'tool' ? checks.get(call.entry.server) : undefined
    return check?.(call.input.arguments.value)
  })
}
