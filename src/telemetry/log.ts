import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import type { Log } from '../core/log.ts'
import type { Observed, Observer } from '../core/observer.ts'
import { jsonValue } from '../json/parse-json.ts'
import { speltOut } from '../lib/characters.ts'

export interface LogOptions {
  readonly level: string
  /** Standard error by default, because standard output is for responses. */
  readonly destination?: Writable
  readonly pretty?: boolean
}

/** Level numbers as log collectors expect them. */
const levels = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, fatal: 60 } as const
type Level = keyof typeof levels

/** Creates a log. `silent` and unknown levels disable it. */
export function createLog({ level, destination = process.stderr, pretty = false }: LogOptions): Log {
  const least = levels[level as Level] ?? Number.POSITIVE_INFINITY
  let clean = (line: string): string => line
  const write = (line: string): void =>
    void destination.write(pretty ? readable(clean(line), destination) : clean(line))
  const at = (name: Level): Log['info'] =>
    levels[name] < least ? () => {} : (facts, message) => write(lineOf(levels[name], facts, message))
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    conceal(conceal) {
      clean = conceal
    },
    isLevelEnabled: (name) => levels[name as Level] >= least,
  }
}

function lineOf(level: number, facts: object, msg: string): string {
  const head = { level, time: new Date().toISOString() }
  try {
    return `${JSON.stringify({ ...head, ...facts, msg }, (_, fact) => (fact instanceof Error ? errorFacts(fact) : fact))}\n`
  } catch {
    // Keep the message even if the other fields cannot be serialized.
    return `${JSON.stringify({ ...head, msg })}\n`
  }
}

function errorFacts(error: Error): object {
  const { message, stack, code } = error as NodeJS.ErrnoException
  return { type: error.constructor.name, message, code, stack, cause: error.cause }
}

const names: Record<number, string> = Object.fromEntries(Object.entries(levels).map(([name, number]) => [number, name]))
const colours = { trace: 'gray', debug: 'gray', info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const

interface LogLine extends Record<string, unknown> {
  readonly level: number
  readonly server?: string
  /** An error as `errorFacts` writes it, or whatever else was thrown. */
  readonly err?: { readonly message?: string }
}

/** Formats a line for people: `12:30:01 warn  filesystem: connection lost … (err=…)`. */
function readable(line: string, stream: Writable): string {
  const paint = (colour: 'gray' | (typeof colours)[keyof typeof colours], text: string) =>
    styleText(colour, text, { stream })
  const { level, time, msg, server, err, ...facts } = jsonValue(line) as LogLine
  const name = (names[level] ?? 'info') as keyof typeof colours
  const rest = Object.entries(err ? { ...facts, err: err.message ?? err } : facts)
  const tail = rest.map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const sentence = plain(`${server ? `${server}: ` : ''}${msg}`)
  const head = `${paint('gray', String(time).slice(11, 19))} ${paint(colours[name], name.padEnd(5))}`
  return `${head} ${sentence}${tail.length > 0 ? paint('gray', ` (${plain(tail.join(', '))})`) : ''}\n`
}

/** Makes text from servers safe to print: keeps it on one line and escapes terminal sequences. */
const plain = (text: string): string => speltOut(text.replace(/\s+/g, ' '))

/** Logs each call at debug level, with redacted names (B6). Use it only if `logsCalls` is true, to save work. */
export const callLog = (log: Log, redact: (text: string) => string): Observer => ({
  ended(observed) {
    const { kind, code } = observed.outcome
    if (kind === 'answered') log.debug(facts(observed, redact), 'call answered')
    else if (kind === 'tool_error') log.debug(facts(observed, redact), 'call returned a tool error')
    else log.debug({ ...facts(observed, redact), error: code }, 'call failed')
  },
})

export const logsCalls = (log: Log): boolean => log.isLevelEnabled?.('debug') ?? true

const facts = ({ call, ms }: Observed, redact: (text: string) => string) => ({
  call: call.id,
  parent: call.parent,
  agent: redact(call.caller.agent),
  server: redact(call.entry.server),
  [call.entry.kind]: redact(call.entry.name),
  ms: Math.round(ms * 100) / 100,
})
