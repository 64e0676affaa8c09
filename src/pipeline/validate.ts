import type { Call, Interceptor } from '../core/call.ts'
import type { Definition, Entry } from '../core/entry.ts'
import { onceFree } from './compose.ts'

/** Refuses arguments that do not fit; a promise where that cannot be told at once. */
export type Validate = (
  schema: Readonly<Record<string, unknown>>,
  args: Readonly<Record<string, unknown>>,
  tool: string,
  exact?: Readonly<Record<string, unknown>>,
) => Promise<void> | undefined

/** Checks a tool's arguments against its schema before anything is sent (F9), and what the door wants to see of them. */
export const validate = (check: Validate): Interceptor => {
  const checked = (call: Call): Promise<void> | undefined => {
    call.admit?.()
    const { kind, definition, checksItself, exactSchema, server, name } = call.entry
    if (kind !== 'tool' || checksItself || !definition.inputSchema) return undefined
    const { value, exact } = call.input.arguments
    return check(exactSchema ?? definition.inputSchema, value, `${server}.${name}`, exact)
  }
  return onceFree(checked)
}

/** Refuses paths, statements and addresses that an argument or a URI must not hold; a promise where that takes a while. */
export type GuardCheck = (
  args: Readonly<Record<string, unknown>>,
  uri: string | undefined,
  definition: Definition,
) => Promise<void> | undefined

/** Looks at the arguments of tools and prompts that a server's guards name, and at the URIs of its resources (F9). */
export const guards = (checks: ReadonlyMap<string, GuardCheck>): Interceptor =>
  onceFree(({ entry, input }) =>
    checks.get(entry.server)?.(input.arguments.value, uriOf(entry, input), entry.definition),
  )

const uriOf = ({ kind, name }: Entry, { uri }: Call['input']): string | undefined =>
  uri ?? (kind === 'resource' ? name : undefined)
