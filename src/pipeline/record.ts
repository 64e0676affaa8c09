import type { Call, Interceptor } from '../core/call.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'

/** Takes secrets out of a name. */
export type Redact = (text: string) => string

/** One line in the log for every call, however it ended; names are redacted, since any may hold a secret (B6). */
export const record = (log: Log, redact: Redact): Interceptor => {
  return async (call, next) => {
    const start = performance.now()
    try {
      const result = await next(call)
      log.debug(facts(call, start, redact), result.isError ? 'call answered with a tool error' : 'call answered')
      return result
    } catch (error) {
      log.debug({ ...facts(call, start, redact), error: codeOf(error) }, 'call failed')
      throw error
    }
  }
}

const facts = ({ id, parent, caller, entry }: Call, start: number, redact: Redact) => ({
  call: id,
  ...(parent && { parent }),
  agent: redact(caller.agent),
  server: redact(entry.server),
  [entry.kind]: redact(entry.name),
  ms: Math.round((performance.now() - start) * 100) / 100,
})

const codeOf = (error: unknown): string =>
  error instanceof ServerError ? `rpc ${error.error.value.code}` : ToolwayError.from(error).code
