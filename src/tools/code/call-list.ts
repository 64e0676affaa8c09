import type { CallStatus, InnerCall } from './ledger.ts'

/** A call as the answer tells it; `count` of them one after the other where all went the same way. */
export interface ToldCall extends InnerCall {
  readonly count?: number
}

const maxToldSingly = 12
const maxTold = 60

/** The calls of a program as they are told: each where there are few, else like ones together. */
export function toldCalls(calls: readonly InnerCall[]): { told: readonly ToldCall[]; untold: string | undefined } {
  if (calls.length <= maxToldSingly) return { told: calls.map(rounded), untold: undefined }
  const groups = grouped(calls)
  const told = groups.slice(0, maxTold)
  const rest = calls.slice(told.reduce((sum, { count = 1 }) => sum + count, 0))
  const untold = rest.length === 0 ? undefined : `${rest.length} further calls are not listed: ${tally(rest)}.`
  return { told: told.map(rounded), untold }
}

function grouped(calls: readonly InnerCall[]): ToldCall[] {
  const groups: ToldCall[] = []
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

const rounded = (call: ToldCall): ToldCall => ({
  ...call,
  tool: call.tool.length > maxName ? `${call.tool.slice(0, maxName)}…` : call.tool,
  durationMs: Math.round(call.durationMs),
})
