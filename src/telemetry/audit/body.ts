import type { AuditBegin, AuditEnd } from '../../core/audit.ts'
import { bounded, longestArguments, longestStart, longestText } from './bounds.ts'
import { canonical, deepest, TooLong } from './canonical.ts'
import type { Link, Truncated } from './record.ts'

/** A record's place in the chain, which is known only when it is written. */
export type Place = Omit<Link, 'hash'>

/** The canonical JSON of a record without its hash, once it has a place. */
export type Body = (place: Place) => string

type Written = Exclude<keyof (AuditBegin & AuditEnd), 'brief'>

/** All members of the record of an event, with the most that is kept of a text. The compiler misses none. */
const members: Record<Written | keyof Place | 'phase', number> = {
  address: longestText,
  agent: longestText,
  anonymous: 0,
  arguments: 0,
  asked: longestText,
  call: longestText,
  code: longestText,
  decision: longestText,
  is_error: 0,
  kind: longestText,
  latency_ms: 0,
  operation: longestText,
  parent: longestText,
  phase: longestText,
  prev: longestText,
  principal: longestText,
  reason: longestText,
  requested: 0,
  returned: 0,
  rule: 1024,
  seq: 0,
  server: longestText,
  suppressed: 0,
  time: longestText,
  tokens: 0,
  // May be a URI.
  tool: 2048,
  write: 0,
}

/** What callers, servers and operators name as they like: any of it may hold a secret, or be one. */
const named: ReadonlySet<string> = new Set<Written>([
  'agent',
  'asked',
  'operation',
  'principal',
  'reason',
  'rule',
  'server',
  'tool',
])

/** In canonical order, each with the text before its value. */
const plan = Object.keys(members)
  .sort()
  .map((name) => {
    const most = members[name as keyof typeof members]
    return { name, lead: `,"${name}":`, most, briefly: Math.min(most, longestText), named: named.has(name) }
  })

/** Takes secrets out of a name. */
export type Redact = (text: string) => string

/** A redactor that fails must not let anything through, and is no reason not to write the rest. */
export const careful =
  (redact: Redact): Redact =>
  (text) => {
    try {
      return redact(text)
    } catch {
      return 'dropped'
    }
  }

/** What one of the two records of an operation says; `described` is canonical JSON already. */
export function eventBody(
  phase: 'before' | 'after',
  event: AuditBegin | AuditEnd,
  redact: Redact,
  described?: string,
): Body {
  return (place) => {
    const values: Readonly<Record<string, unknown>> = { ...event, ...place, phase }
    let text = ''
    for (const { name, lead, most, briefly, named } of plan) {
      if (name === 'arguments') {
        if (described !== undefined) text += lead + described
        continue
      }
      const value = values[name]
      if (value === undefined) continue
      if (typeof value !== 'string') {
        text += lead + JSON.stringify(value)
        continue
      }
      // Cut after it was redacted: nobody recognises half a secret.
      const shown = named ? redact(value) : value
      text += lead + JSON.stringify(bounded(shown, event.brief ? briefly : most))
    }
    return `{${text.slice(1)}}`
  }
}

/**
 * The canonical JSON of what is written down of arguments; `undefined` for nothing. A redactor that fails must not let
 * anything through.
 */
export function describedArguments(
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
const wholeArguments = { most: longestArguments, start: longestStart }
const briefArguments = { most: longestText, start: longestText }

function within(described: unknown, kept: typeof wholeArguments): string {
  try {
    return canonical(described, { characters: kept.most, depth: deepest - 1 })
  } catch (error) {
    if (!(error instanceof TooLong)) throw error
    const text = JSON.stringify(described)
    const start = text.slice(0, kept.start).toWellFormed()
    return canonical({ truncated: true, bytes: Buffer.byteLength(text), start } satisfies Truncated)
  }
}
