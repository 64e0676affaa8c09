import { hash } from 'node:crypto'
import type { AuditBegin, AuditEnd } from '../../core/audit.ts'
import { canonical, deepest, TooLong } from '../../lib/canonical-json.ts'
import type { ChainedRecord, TruncatedArguments } from '../record.ts'
import { memoizeRedaction } from '../redact/redactor.ts'

/** How much of the arguments is kept, in characters of their JSON. */
export const maxArguments = 16 * 1024
/** How much of longer ones is kept. */
const maxStart = 4 * 1024
/** How much is kept of a text, unless it is one of those that are often long. */
const maxText = 512

/** No line is longer than this many bytes, also where each character of each text needs six of them. */
export const maxLine = 128 * 1024

/** A text that is too long is cut, and its hash keeps it apart from others with the same beginning. */
export function bounded(text: string, most = maxText): string {
  if (text.length <= most) return text
  const mark = `… (${text.length} characters, SHA-256 ${hash('sha256', text)})`
  return text.slice(0, most - mark.length).toWellFormed() + mark
}

/** A record's place in the chain, which is known only when it is written. */
export type RecordPosition = Omit<ChainedRecord, 'hash'>

/** The canonical JSON of a record without its hash, once it has a place. */
export type RecordBody = (place: RecordPosition) => string

/** Takes secrets out of a name. */
export type RedactText = (text: string) => string

/** How names stand in a record: without secrets, bounded, as JSON. */
export type QuoteName = (name: string, most: number) => string

/** Names repeat from call to call: the texts of most are remembered. */
export function createNameQuoter(redact: RedactText): QuoteName {
  const careful = dropOnError(redact)
  const short = memoizeRedaction((clean) => JSON.stringify(clean))
  return (name, most) => {
    // Cut after it was redacted: nobody recognises half a secret.
    const clean = careful(name)
    return clean.length <= maxText ? short(clean) : JSON.stringify(bounded(clean, most))
  }
}

/** A redactor that fails must not let anything through, and is no reason not to write the rest. */
const dropOnError =
  (redact: RedactText): RedactText =>
  (text) => {
    try {
      return redact(text)
    } catch {
      return 'dropped'
    }
  }

/** What is kept of names that are often long: rules, and tools, which may be URIs. */
const maxRule = 1024
const maxTool = 2048
/** More are never configured. */
const maxAttempts = 32

/**
 * What one of the two records of an operation says; `described` is canonical JSON already. Every call writes two of
 * these, so the members stand here in canonical order instead of being sorted into it.
 */
export function eventBody(
  phase: 'before' | 'after',
  event: AuditBegin | AuditEnd,
  quote: QuoteName,
  described?: string,
): RecordBody {
  const how: Partial<AuditEnd> = phase === 'after' ? (event as AuditEnd) : beginning
  const name = (lead: string, text: string | undefined, most = maxText) =>
    text === undefined ? '' : lead + quote(text, event.brief ? maxText : most)
  return ({ time, seq, prev }) =>
    `{${event.address === undefined ? '' : `"address":${plain(event.address)},`}` +
    `"agent":${quote(event.agent, maxText)}` +
    (event.anonymous ? ',"anonymous":true' : '') +
    (described === undefined ? '' : `,"arguments":${described}`) +
    name(',"asked":', how.asked) +
    (how.attempts === undefined ? '' : `,"attempts":${JSON.stringify(how.attempts.slice(-maxAttempts))}`) +
    `,"call":${plain(event.call)}` +
    (how.code === undefined ? '' : `,"code":${plain(how.code)}`) +
    (how.decision === undefined ? '' : `,"decision":"${how.decision}"`) +
    name(',"detail":', how.detail) +
    (how.findings === undefined ? '' : `,"findings":${JSON.stringify(how.findings)}`) +
    number(',"is_error":', how.is_error) +
    (event.kind === undefined ? '' : `,"kind":"${event.kind}"`) +
    number(',"latency_ms":', how.latency_ms) +
    `,"operation":${quote(event.operation, maxText)}` +
    (event.parent === undefined ? '' : `,"parent":${plain(event.parent)}`) +
    `,"phase":"${phase}","prev":"${prev}","principal":${quote(event.principal, maxText)}` +
    name(',"reason":', how.reason) +
    number(',"requested":', how.requested) +
    number(',"returned":', how.returned) +
    name(',"rule":', how.rule, maxRule) +
    `,"seq":${seq}` +
    name(',"server":', event.server) +
    number(',"suppressed":', how.suppressed) +
    `,"time":"${time}"` +
    number(',"tokens":', how.tokens) +
    name(',"tool":', event.tool, maxTool) +
    `,"write":${event.write}}`
}

const beginning = {}

const plain = (text: string): string => JSON.stringify(bounded(text))

const number = (lead: string, value: number | boolean | undefined): string =>
  value === undefined ? '' : lead + JSON.stringify(value)

/**
 * The canonical JSON of what is written down of arguments; `undefined` for nothing. A redactor that fails must not let
 * anything through.
 */
export function argumentsJson(
  given: AuditBegin['arguments'],
  describe: (given: Record<string, unknown>) => unknown,
  brief = false,
): string | undefined {
  if (given === undefined) return undefined
  try {
    const described = describe(given)
    return described === undefined ? undefined : within(described, brief ? briefArguments : wholeArguments)
  } catch {
    return '"dropped"'
  }
}

/** How much of arguments is kept, in characters of their JSON, and how much of longer ones. */
const wholeArguments = { most: maxArguments, start: maxStart }
const briefArguments = { most: maxText, start: maxText }

function within(described: unknown, kept: typeof wholeArguments): string {
  try {
    return canonical(described, { characters: kept.most, depth: deepest - 1 })
  } catch (error) {
    if (!(error instanceof TooLong)) throw error
    const text = JSON.stringify(described)
    const start = text.slice(0, kept.start).toWellFormed()
    const sha256 = hash('sha256', text)
    return canonical({ truncated: true, bytes: Buffer.byteLength(text), sha256, start } satisfies TruncatedArguments)
  }
}
