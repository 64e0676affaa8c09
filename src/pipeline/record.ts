import type { Call, Interceptor } from '../core/call.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'

/** One line in the log for every call, however it ended. */
export const record = (log: Log): Interceptor => {
  return async (call, next) => {
    const start = performance.now()
    try {
      const result = await next(call)
      log.debug(facts(call, start), result.isError ? 'call answered with a tool error' : 'call answered')
      return result
    } catch (error) {
      log.debug({ ...facts(call, start), error: codeOf(error) }, 'call failed')
      throw error
    }
  }
}

const facts = ({ id, parent, caller, entry }: Call, start: number) => ({
  call: id,
  ...(parent && { parent }),
  agent: caller.agent,
  server: entry.server,
  [entry.kind]: entry.name,
  ms: Math.round((performance.now() - start) * 100) / 100,
})

const codeOf = (error: unknown): string =>
  error instanceof ServerError ? `rpc ${error.error.value.code}` : ToolwayError.from(error).code
