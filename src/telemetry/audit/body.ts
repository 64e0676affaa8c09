import type { AuditBegin, AuditEnd } from '../../core/audit.ts'
import { bounded, longestArguments, longestStart, longestText } from './bounds.ts'
import { canonical, deepest, TooLong } from './canonical.ts'
import type { Link, Truncated } from './record.ts'

/** A record's place in the chain, which is known only when it is written. */
export type Place = Omit<Link, 'hash'>

/** The canonical JSON of a record without its hash, once it has a place. */
export type Body = (place: Place) => string

/** All members of the record of an event, with the most that is kept of a text. The compiler misses none. */
const members: Record<keyof (AuditBegin & AuditEnd) | keyof Place | 'phase', number> = {
  address: longestText,
  agent: longestText,
  anonymous: 0,
  arguments: 0,
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
  time: longestText,
  tokens: 0,
  // May be a URI.
  tool: 2048,
  write: 0,
}

/** In canonical order, each with the text before its value. */
const plan = Object.keys(members)
  .sort()
  .map((name) => ({ name, lead: `,"${name}":`, most: members[name as keyof typeof members] }))

/** What one of the two records of an operation says; `described` is canonical JSON already. */
export function eventBody(phase: 'before' | 'after', event: AuditBegin | AuditEnd, described?: string): Body {
  return (place) => {
    const values: Readonly<Record<string, unknown>> = { ...event, ...place, phase }
    let text = ''
    for (const { name, lead, most } of plan) {
      if (name === 'arguments') {
        if (described !== undefined) text += lead + described
        continue
      }
      const value = values[name]
      if (value === undefined) continue
      text += lead + JSON.stringify(typeof value === 'string' ? bounded(value, most) : value)
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
): string | undefined {
  if (given === undefined) return undefined
  try {
    const described = describe(given)
    return described === undefined ? undefined : within(described)
  } catch {
    return '"dropped"'
  }
}

function within(described: unknown): string {
  try {
    return canonical(described, { characters: longestArguments, depth: deepest - 1 })
  } catch (error) {
    if (!(error instanceof TooLong)) throw error
    const text = JSON.stringify(described)
    const start = text.slice(0, longestStart).toWellFormed()
    return canonical({ truncated: true, bytes: Buffer.byteLength(text), start } satisfies Truncated)
  }
}
