import { ToolwayError } from '../core/errors.ts'
import { HostRefusal, type Program } from '../core/executor.ts'
import type { Log } from '../core/log.ts'
import type { Refusal } from './guest/frames.ts'
import type { Limits } from './limits.ts'

/** What a program asks of its host, a few at a time and not without end. */
export interface HostCalls {
  /** Takes one call; false if no honest child would have made it. */
  take(id: number, payload: Buffer): boolean
}

export function createHostCalls(options: {
  readonly host: Program['host']
  readonly limits: Limits
  readonly signal: AbortSignal
  readonly log: Log
  /** Settles when the answer has been handed over, so that one that nobody reads holds a place. */
  answer(id: number, text: string): Promise<void>
  refuse(id: number, refusal: Refusal): Promise<void>
}): HostCalls {
  const { limits, signal } = options
  const waiting: (() => void)[] = []
  const seen = new Set<number>()
  let running = 0

  const next = () => {
    while (running < limits.callsAtOnce && !signal.aborted) {
      const start = waiting.shift()
      if (!start) return
      running++
      start()
    }
  }

  const run = async (id: number, name: string, input: string) => {
    try {
      const text = await options.host(name, input, signal)
      if (signal.aborted) return
      if (Buffer.byteLength(text) > limits.answerBytes) throw tooLarge(name, limits)
      await options.answer(id, text)
    } catch (thrown) {
      if (!signal.aborted) await options.refuse(id, refusalOf(thrown, options.log))
    } finally {
      running--
      next()
    }
  }

  return {
    take(id, payload) {
      if (seen.has(id) || seen.size >= limits.calls) return false
      seen.add(id)
      const text = payload.toString()
      const end = text.indexOf('\n')
      if (end <= 0 || end > 256) return false
      waiting.push(() => void run(id, text.slice(0, end), text.slice(end + 1)))
      next()
      return true
    },
  }
}

/** What a program is told of a failure: refusals and our own errors as they are, of anything else only that it was. */
function refusalOf(thrown: unknown, log: Log): Refusal {
  if (thrown instanceof HostRefusal || thrown instanceof ToolwayError) {
    return { code: thrown.code, message: thrown.message }
  }
  log.error({ error: thrown }, 'a host function of a program failed')
  return { code: 'INTERNAL', message: 'The host failed to answer; its log has the cause.' }
}

const tooLarge = (name: string, { answerBytes }: Limits) =>
  new HostRefusal('OVERLOADED', `The answer of ${name} is larger than ${answerBytes} bytes; ask for less.`)
