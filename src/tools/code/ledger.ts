import type { Clock } from '../../core/clock.ts'

/**
 * What came of a call: `ok` and `error`: the tool has run, and says itself how it went; `refused`: nothing was sent;
 * `unknown`: it was sent and not answered, so it may have run.
 */
export type CallStatus = 'ok' | 'error' | 'refused' | 'unknown'

export interface InnerCall {
  /** `server.tool`, or what the program called it where there is none. */
  readonly tool: string
  readonly status: CallStatus
  readonly code?: string
  readonly durationMs: number
}

/** Every call that a program has made, in the order in which it made them: "did the write happen?" has an answer. */
export interface Ledger {
  begin(tool: string): OpenCall
  readonly calls: readonly InnerCall[]
}

export interface OpenCall {
  /** It turned out to be this tool. */
  named(tool: string): void
  end(status: CallStatus, code?: string): void
}

export function createLedger(clock: Clock): Ledger {
  const calls: InnerCall[] = []
  return {
    calls,
    begin(spelling) {
      const start = clock.monotonic()
      const at = calls.length
      let tool = spelling
      const end = (status: CallStatus, code?: string) => {
        calls[at] = { tool, status, ...(code !== undefined && { code }), durationMs: clock.monotonic() - start }
      }
      // Until it is known better.
      end('refused')
      return {
        named(name) {
          tool = name
        },
        end,
      }
    },
  }
}
