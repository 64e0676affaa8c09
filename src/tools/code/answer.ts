import type { ExecutionOutcome } from '../../core/executor.ts'
import { parseExactly, parseJson } from '../../json/parse-json.ts'
import { shorten } from '../../lib/message-text.ts'
import { jsonLength, shortenJson, tooDeep, visibleLine } from './text.ts'

export interface CodeAnswer {
  readonly status: ExecutionOutcome['status']
  readonly error?: ExecutionOutcome['error']
  /**
   * The value that the program returned, with an `ExactNumber` for each number that a double cannot hold. If the value
   * was too long, this is its shortened text.
   */
  readonly value?: unknown
  readonly logs?: string
  readonly calls?: readonly ListedCall[]
  readonly truncated?: readonly string[]
  readonly reset?: string
  readonly isolation: ExecutionOutcome['isolation'] | null
  readonly durationMs: number
}

/** Max characters in the whole result of `execute_code`. */
export const maxAnswer = 24_000

const maxErrorMessage = 2000
/** Number of characters reserved for punctuation, member names and the notes about what was cut. */
const reservedCharacters = 600

/** Converts a program's outcome into the answer for the model, which has at most `maxAnswer` characters. */
export function codeAnswer(outcome: ExecutionOutcome, calls: readonly InnerCall[]): CodeAnswer {
  const { status, error, reset } = outcome
  const { listed, omitted } = listCalls(calls)
  const thrown = error && { ...error, message: shortenJson(error.message, maxErrorMessage) }
  const facts = {
    calls: listed.length > 0 ? listed : undefined,
    reset: reset === undefined ? undefined : visibleLine(reset, 300),
    isolation: outcome.isolation ?? null,
    durationMs: Math.round(outcome.durationMs),
  }
  const cut = [...outcome.truncated.slice(0, 5).map((text) => visibleLine(text, 200)), ...omitted]
  const used = JSON.stringify({ status, error: thrown, ...facts }).length + JSON.stringify(cut).length
  const shown = fitOutput(outcome, maxAnswer - used - reservedCharacters)
  const truncated = [...cut, ...shown.cut]
  const note = truncated.length > 0 ? truncated : undefined
  return wellFormedAnswer({ status, error: thrown, ...shown.members, ...facts, truncated: note })
}

/** Replaces lone surrogates, which JSON can express but some clients cannot read. */
function wellFormedAnswer(answer: CodeAnswer): CodeAnswer {
  const text = JSON.stringify(answer)
  if (!text.includes('\\ud')) return answer
  return parseExactly(text.replaceAll(/(\\\\)|\\ud[89a-f]../g, (_, backslash = '\ufffd') => backslash)) as CodeAnswer
}

/** Shortens the value and the logs to fit. The value takes precedence, because it is the purpose of the program. */
function fitOutput({ value, logs }: ExecutionOutcome, room: number) {
  const cut: string[] = []
  const forLogs = Math.max(Math.floor(room / 4), room - (value?.length ?? 0))
  const shownLogs = shortenJson(logs, forLogs)
  if (shownLogs !== logs) cut.push('The printed output was truncated.')
  const shownValue = value === undefined ? undefined : fittedValue(value, room - jsonLength(shownLogs))
  if (shownValue?.cut)
    cut.push(`The value (${value?.length} characters) was truncated and is returned as text. Return a smaller value.`)
  return { members: { value: shownValue?.value, logs: logs === '' ? undefined : shownLogs }, cut }
}

function fittedValue(json: string, room: number): { readonly value: unknown; readonly cut: boolean } {
  const value = tooDeep(json) || parseJson(json) === undefined ? undefined : parseExactly(json)
  if (value !== undefined && JSON.stringify(value).length <= room) return { value, cut: false }
  return { value: shortenJson(typeof value === 'string' ? value : json, room), cut: true }
}

/**
 * `ok`, `error`: the tool ran. `refused`: nothing was sent to the server. `unknown`: the call was sent but not
 * answered, so the tool may have run.
 */
export type CallStatus = 'ok' | 'error' | 'refused' | 'unknown'

/** A call that a program made. Its record is updated until it ends, so that a model can tell whether a write happened. */
export interface InnerCall {
  /** `server.tool`, or the name as the program wrote it if no such tool was found. */
  tool: string
  status: CallStatus
  code?: string | undefined
  durationMs: number
}

/** One call, or `count` consecutive calls with the same outcome. */
interface ListedCall extends InnerCall {
  count?: number
}

const maxUngrouped = 12
const maxListedGroups = 60

function listCalls(calls: readonly InnerCall[]): { listed: readonly ListedCall[]; omitted: readonly string[] } {
  if (calls.length <= maxUngrouped) return { listed: calls.map(roundCall), omitted: [] }
  const listed = groupCalls(calls).slice(0, maxListedGroups)
  const rest = calls.slice(listed.reduce((sum, { count = 1 }) => sum + count, 0))
  const tally = [...Map.groupBy(rest, ({ status }) => status)].map(([status, { length }]) => `${length} ${status}`)
  const omitted = rest.length === 0 ? [] : [`${rest.length} more calls are not listed: ${tally.join(', ')}.`]
  return { listed: listed.map(roundCall), omitted }
}

function groupCalls(calls: readonly InnerCall[]): ListedCall[] {
  const groups: ListedCall[] = []
  for (const call of calls) {
    const last = groups.at(-1)
    if (last && last.tool === call.tool && last.status === call.status && last.code === call.code) {
      last.count = (last.count ?? 1) + 1
      last.durationMs += call.durationMs
    } else groups.push({ ...call })
  }
  return groups
}

const maxListedName = 100

const roundCall = (call: ListedCall): ListedCall => ({
  ...call,
  tool: shorten(call.tool, maxListedName),
  durationMs: Math.round(call.durationMs),
})
