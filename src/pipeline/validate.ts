import type { Call, CallCheck } from '../core/call.ts'
import type { Definition, Entry } from '../core/entry.ts'

/** Throws if the arguments do not match the schema; returns a promise only if the check is asynchronous. */
export type Validate = (
  schema: Readonly<Record<string, unknown>>,
  args: Readonly<Record<string, unknown>>,
  tool: string,
  exact?: Readonly<Record<string, unknown>>,
) => Promise<void> | undefined

/** Validates a tool's arguments against its schema before anything is sent (F9), after the call's own `admit` check. */
export const validate =
  (check: Validate): CallCheck =>
  (call) => {
    call.admit?.()
    const { kind, definition, checksItself, exactSchema, server, name } = call.entry
    if (kind !== 'tool' || checksItself || !definition.inputSchema) return undefined
    const { value, exact } = call.input.arguments
    return check(exactSchema ?? definition.inputSchema, value, `${server}.${name}`, exact)
  }

/** Throws if it finds a forbidden path, SQL statement or URL; returns a promise only if the check is asynchronous. */
export type GuardCheck = (
  args: Readonly<Record<string, unknown>>,
  uri: string | undefined,
  definition: Definition,
) => Promise<void> | undefined

export type ServerGuards = ReadonlyMap<string, GuardCheck>

/** Checks the arguments of tools and prompts, and the URIs of resources, against the server's guards (F9). */
export const guards =
  (checks: () => ServerGuards | undefined): CallCheck =>
  ({ entry, input }) =>
    checks()?.get(entry.server)?.(input.arguments.value, uriOf(entry, input), entry.definition)

const uriOf = ({ kind, name }: Entry, { uri }: Call['input']): string | undefined =>
  uri ?? (kind === 'resource' ? name : undefined)
