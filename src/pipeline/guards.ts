import type { Call, Interceptor } from '../core/call.ts'
import type { Definition, Entry } from '../core/entry.ts'
import { onceFree } from './once-free.ts'

/** Refuses paths, statements and addresses that an argument or a URI must not hold; a promise where that takes a while. */
export type Check = (
  args: Readonly<Record<string, unknown>>,
  uri: string | undefined,
  definition: Definition,
) => Promise<void> | undefined

/** Looks at the arguments of tools and prompts that a server's guards name, and at the URIs of its resources (F9). */
export const guards = (checks: ReadonlyMap<string, Check>): Interceptor =>
  onceFree(({ entry, input }) =>
    checks.get(entry.server)?.(input.arguments.value, uriOf(entry, input), entry.definition),
  )

const uriOf = ({ kind, name }: Entry, { uri }: Call['input']): string | undefined =>
  uri ?? (kind === 'resource' ? name : undefined)
