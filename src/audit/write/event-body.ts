import { hash } from 'node:crypto'
import type { AuditBegin, AuditEnd } from '../../core/audit.ts'
import { canonical, defaultMaxDepth, TooLong } from '../../lib/canonical-json.ts'
import { memoize } from '../../lib/memoize.ts'
import type { ChainedRecord, TruncatedArguments } from '../record.ts'

/** Max size of recorded arguments, in characters of JSON. */
export const maxArguments = 16 * 1024
/** How many characters of longer arguments are kept. */
const maxStart = 4 * 1024
const maxText = 512

/** Max bytes per line, even if every character needs six bytes. */
export const maxLine = 128 * 1024

/** Truncates a long string. The appended hash tells it apart from other strings with the same beginning. */
export function bounded(text: string, maxLength = maxText): string {
  if (text.length <= maxLength) return text
  const mark = `… (${text.length} characters, SHA-256 ${hash('sha256', text)})`
  return text.slice(0, maxLength - mark.length).toWellFormed() + mark
}

/** A record's position in the chain, which is known only when the record is written. */
export type RecordPosition = Omit<ChainedRecord, 'hash'>

export type RecordBody = (position: RecordPosition) => string

type QuoteName = (name: string, maxLength: number) => string

/** Creates a function that redacts, truncates and quotes names. Results are cached, because names repeat. */
export function createNameQuoter(redact: (text: string) => string): QuoteName {
  const quoteShort = memoize((clean) => JSON.stringify(clean))
  return (name, maxLength) => {
    // If the redactor fails, drop the name but write the rest of the record.
    let clean = 'dropped'
    try {
      // Redact before truncating, because half a secret would not be recognised.
      clean = redact(name)
    } catch {}
    return clean.length <= maxText ? quoteShort(clean) : JSON.stringify(bounded(clean, maxLength))
  }
}

/** Max characters for names that are often long: rule names, and tool names, which may be URIs. */
const maxRule = 1024
const maxTool = 2048
/** Max number of listed attempts. The configuration never allows more. */
const maxAttempts = 32

/** The body of an event record. Writes members in canonical order to avoid sorting; `described` is canonical JSON. */
export function eventBody(
  phase: 'before' | 'after',
  event: AuditBegin | AuditEnd,
  quote: QuoteName,
  described?: string,
): RecordBody {
  const how: Partial<AuditEnd> = phase === 'after' ? (event as AuditEnd) : beginning
  const name = (lead: string, text: string | undefined, maxLength = maxText) =>
    text === undefined ? '' : lead + quote(text, event.brief ? maxText : maxLength)
  return ({ time, seq, prev }) =>
    `{${event.address === undefined ? '' : `"address":${plain(event.address)},`}` +
    `"agent":${quote(event.agent, maxText)}` +
    (event.anonymous ? ',"anonymous":true' : '') +
    (how.approval === undefined ? '' : `,"approval":"${how.approval}"`) +
    name(',"approver":', how.approver) +
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

/** The recorded arguments as canonical JSON. Undefined if none are recorded; `"dropped"` if the redactor fails. */
export function argumentsJson(
  args: AuditBegin['arguments'],
  describe: (args: Record<string, unknown>) => unknown,
  brief = false,
): string | undefined {
  if (args === undefined) return undefined
  try {
    const described = describe(args)
    return described === undefined ? undefined : truncatedJson(described, brief)
  } catch {
    return '"dropped"'
  }
}

function truncatedJson(described: unknown, brief: boolean): string {
  try {
    return canonical(described, { characters: brief ? maxText : maxArguments, depth: defaultMaxDepth - 1 })
  } catch (error) {
    if (!(error instanceof TooLong)) throw error
    const text = JSON.stringify(described)
    const start = text.slice(0, brief ? maxText : maxStart).toWellFormed()
    const sha256 = hash('sha256', text)
    return canonical({ truncated: true, bytes: Buffer.byteLength(text), sha256, start } satisfies TruncatedArguments)
  }
}
