import type { Call, Interceptor } from '../core/call.ts'
import { onceFree } from './once-free.ts'

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
