import type { Interceptor } from '../core/call.ts'

/** Refuses arguments that do not fit; a promise where that cannot be told at once. */
export type Validate = (
  schema: Readonly<Record<string, unknown>>,
  args: Readonly<Record<string, unknown>>,
  tool: string,
) => Promise<void> | undefined

/** Checks a tool's arguments against its schema before anything is sent (F9), and what the door wants to see of them. */
export const validate = (check: Validate): Interceptor => {
  return async (call, next) => {
    call.admit?.()
    const { kind, definition, checksItself, server, name } = call.entry
    if (kind === 'tool' && !checksItself && definition.inputSchema) {
      const waiting = check(definition.inputSchema, call.input.arguments.value, `${server}.${name}`)
      if (waiting) await waiting
    }
    return next(call)
  }
}
