import type { Clock } from '../../core/clock.ts'
import { shorten } from '../../lib/message-text.ts'

/**
 * `ok`, `error`: the tool ran. `refused`: nothing was sent to the server. `unknown`: the call was sent but not
 * answered, so the tool may have run.
 */
export type CallStatus = 'ok' | 'error' | 'refused' | 'unknown'

export interface InnerCall {
  /** `server.tool`, or the name as the program wrote it if no such tool was found. */
  readonly tool: string
  readonly status: CallStatus
  readonly code?: string
  readonly durationMs: number
}

/** Records every call that a program makes, in order, so that a model can tell whether a write happened. */
export function createCallLog(clock: Clock) {
  const calls: InnerCall[] = []
  return {
    calls: calls as readonly InnerCall[],
    begin(spelling: string) {
      const start = clock.monotonic()
      const at = calls.length
      let tool = spelling
      const end = (status: CallStatus, code?: string) => {
        calls[at] = { tool, status, code, durationMs: clock.monotonic() - start }
      }
      // Until it ends, count the call as refused.
      end('refused')
      return {
        named(name: string): void {
          tool = name
        },
        end,
      }
    },
  }
}

/** One call, or `count` consecutive calls with the same outcome. */
export interface ListedCall extends InnerCall {
  readonly count?: number
}

const maxUngrouped = 12
const maxListed = 60

export function listCalls(calls: readonly InnerCall[]): { listed: readonly ListedCall[]; omitted: string | undefined } {
  if (calls.length <= maxUngrouped) return { listed: calls.map(rounded), omitted: undefined }
  const groups = grouped(calls)
  const listed = groups.slice(0, maxListed)
  const rest = calls.slice(listed.reduce((sum, { count = 1 }) => sum + count, 0))
  const omitted = rest.length === 0 ? undefined : `${rest.length} more calls are not listed: ${tally(rest)}.`
  return { listed: listed.map(rounded), omitted }
}

function grouped(calls: readonly InnerCall[]): ListedCall[] {
  const groups: ListedCall[] = []
  for (const call of calls) {
    const last = groups.at(-1)
    if (last && last.tool === call.tool && last.status === call.status && last.code === call.code) {
      const durationMs = last.durationMs + call.durationMs
      groups[groups.length - 1] = { ...last, count: (last.count ?? 1) + 1, durationMs }
    } else groups.push(call)
  }
  return groups
}

function tally(calls: readonly InnerCall[]): string {
  const counts = new Map<CallStatus, number>()
  for (const { status } of calls) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ')
}

const maxName = 100

const rounded = (call: ListedCall): ListedCall => ({
  ...call,
  tool: shorten(call.tool, maxName),
  durationMs: Math.round(call.durationMs),
})
