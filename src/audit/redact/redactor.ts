import { hash } from 'node:crypto'
import type { CapturedText } from '../../core/history.ts'
import type { Json } from '../../json/json.ts'
import { maxDepth, repeatsKey } from '../../json/json-text.ts'
import { ExactNumber, parseJson } from '../../json/parse-json.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import {
  concealAssignments,
  createKeyMatcher,
  createNameMatcher,
  isCount,
  isSecretArgument,
  isValueName,
  nameOfLabel,
} from './assignments.ts'
import { type Conceal, createConceal, minSecretLength, redacted } from './conceal.ts'
import { concealPatterns } from './patterns.ts'

export interface RedactorOptions {
  /** Secret values. Values shorter than six characters are ignored, because they would match everywhere. */
  readonly secrets: readonly string[]
  /** Secret values that change over time. The function must return a new array after each change. */
  readonly tokens?: () => readonly string[]
  /** Names whose values are redacted; `*` is a wildcard. */
  readonly keys: readonly string[]
}

export type Redactor = ReturnType<typeof createRedactor>

export function createRedactor({ secrets, tokens = () => noTokens, keys }: RedactorOptions) {
  const concealSecrets = createConceal(secrets)
  const concealAll = memoizeByObject(createConceal)
  // Tokens first: one that contains a secret must not be left in part.
  const conceal: Conceal = (text) => concealSecrets(concealAll(tokens())(text))
  const isSecretKey = createKeyMatcher(keys)
  const isAssigned = createNameMatcher(isSecretKey)
  const inNumbers = secrets.some((secret) => /^[\d.-]+$/.test(secret.trim()))

  const cleanNumber = (value: number): unknown =>
    inNumbers && conceal(String(value)) !== String(value) ? redacted : value

  const cleanText = (text: string, depth: number, within: Visit): string => {
    const concealed = conceal(text)
    return concealJson(concealed, depth, within) ?? concealPatterns(concealAssignments(concealed, isAssigned))
  }

  /** Redacts JSON text by its structure. Undefined if the text is not JSON. */
  const concealJson = (text: string, depth: number, within: Visit): string | undefined => {
    if (!/^\s*[[{]/.test(text)) return undefined
    const value = parseJson(text)
    if (value === undefined) return undefined
    const clean = walk(value, within, depth + 1)
    if (clean === dropped) return redacted
    // Parsing keeps only the last value of a repeated key, so write the parsed text.
    return clean === value && !repeatsKey(Buffer.from(text), value) ? text : JSON.stringify(clean)
  }

  const hides: Visit['hides'] = (name, value) =>
    isSecretArgument(name, value) || (isSecretKey(name) && !(typeof value === 'number' && isCount(name)))

  /** Redacts everything that may be a secret. */
  const visitAll = (bounds: Bounds): Visit => {
    const visit: Visit = {
      bounds,
      key: (name) => shorten(name, bounds.name, (part) => concealPatterns(conceal(part))),
      hides,
      text: (text, depth) => shorten(text, bounds.text, (part) => cleanText(part, depth, visit)),
      number: cleanNumber,
    }
    return visit
  }
  const visitRecord = visitAll(recordBounds)
  const visitWhole = visitAll(wholeBounds)

  /** Redacts only known secrets. */
  const visitKnown = (bounds: Bounds, clean: Conceal, exactNumbers = false): Visit => ({
    bounds,
    exactNumbers,
    key: (name) => shorten(name, bounds.name, clean),
    hides: () => false,
    text: (text) => shorten(text, bounds.text, clean),
    number: cleanNumber,
  })
  const visitFull = visitKnown(fullBounds, conceal)
  const visitForPerson = visitKnown(personBounds, (text) => orRedacted(() => conceal(text)), true)

  return {
    /**
     * Redacts known values in any encoding, then the values of secret names, then anything that has the form of a
     * credential. Never modifies its input. Values that it cannot handle are dropped; values that are too deeply nested
     * or too long are cut.
     */
    value: (value: unknown) => undefinedIfDropped(walk(value, visitRecord)),
    text: (text: string) => orRedacted(() => visitRecord.text(text, 0)),
    /** Like `value`, but without its limits on length: for values whose size the caller has bounded. */
    whole: (value: unknown) => undefinedIfDropped(walk(value, visitWhole)),
    /** Redacts only known secrets in a value. */
    known: (value: unknown) => undefinedIfDropped(walk(value, visitFull)),
    /** Like `known`, but complete: for a person who decides on the value and must see everything else in it. */
    exceptKnown: (value: unknown) => undefinedIfDropped(walk(value, visitForPerson)),
    /** Redacts only known secrets in a string, and does not truncate it. */
    line: conceal,
    /** Like `text`, but cuts the text after `maxLength` characters instead of the limit for audit records. */
    beginning: (text: string, maxLength: number) =>
      orRedacted(() => cutAt(text, maxLength, (part) => cleanText(part, 0, visitWhole))),
  }
}

function orRedacted(clean: () => string): string {
  try {
    return clean()
  } catch {
    return redacted
  }
}

const noTokens: readonly string[] = []

const undefinedIfDropped = (value: unknown): unknown => (value === dropped ? undefined : value)

/** Redacts and truncates text. Redaction covers some text beyond the cut, to find a secret that crosses it. */
function shorten(text: string, maxLength: number, clean: Conceal): string {
  if (text.length <= maxLength) return clean(text)
  return `${cutAt(text, maxLength, clean)}… (${text.length} characters, SHA-256 ${hash('sha256', text)})`
}

function cutAt(text: string, maxLength: number, clean: Conceal): string {
  if (text.length <= maxLength) return clean(text)
  const part = text.slice(0, maxLength + searchedBeyond)
  const cleaned = clean(part)
  // Redaction may have made it shorter or longer, so count from the end.
  const beyond = part.length - maxLength
  return cleaned.slice(0, -beyond).toWellFormed()
}

/** Number of characters redacted beyond the cut. Ordinary secrets are shorter, even when encoded. */
const searchedBeyond = 4096

interface Bounds {
  /** Max nesting depth. */
  readonly depth: number
  /** Max members and items in one value, across all levels. */
  readonly nodes: number
  /** Max characters per name. */
  readonly name: number
  /** Max characters per string. */
  readonly text: number
  /** Max characters in all of a value's strings together. */
  readonly total: number
}

/**
 * An audit record keeps 16 KiB of arguments, so processing much more would be wasted. No legitimate argument is nested
 * deeper, and this much of a string is enough to recognise a file or a query.
 */
const recordBounds: Bounds = { depth: 32, nodes: 5000, name: 256, text: 4096, total: 64 * 1024 }
const fullBounds: Bounds = { ...recordBounds, text: 16 * 1024 }

const endless = Number.POSITIVE_INFINITY
/** Limits for values whose size is already bounded: only the nesting and the time that they take. */
const wholeBounds: Bounds = { depth: 128, nodes: 200_000, name: endless, text: endless, total: endless }
const personBounds: Bounds = { ...wholeBounds, depth: maxDepth }

interface Visit {
  readonly bounds: Bounds
  key(name: string): string
  hides(name: string, value: unknown): boolean
  text(text: string, depth: number): string
  number(value: number): unknown
  /** Keeps numbers that JSON parsers would round, instead of turning them into text. */
  readonly exactNumbers?: boolean
}

const dropped = Symbol('dropped')

/** Returns a redacted copy, or the value itself if nothing changed. */
function walk(value: unknown, visit: Visit, from = 0): unknown {
  const { bounds } = visit
  let left = bounds.nodes
  let characters = bounds.total

  const text = (value: string, depth: number): string => {
    if (characters <= 0) return `[${value.length} characters, SHA-256 ${hash('sha256', value)}]`
    characters -= value.length
    return visit.text(value, depth)
  }

  const part = (value: unknown, depth: number): unknown => {
    try {
      if (typeof value === 'string') return text(value, depth)
      if (typeof value === 'number') return visit.number(value)
      if (typeof value === 'boolean' || value === null) return value
      if (typeof value !== 'object') return dropped
      if (value instanceof ExactNumber) {
        // Record the number as text, because JSON parsers would round it.
        const digits = text(value.source, depth)
        return visit.exactNumbers && digits === value.source ? value : digits
      }
      if (depth >= bounds.depth) return '[too deep]'
      return Array.isArray(value) ? items(value, depth) : members(value, depth)
    } catch {
      return dropped
    }
  }

  const items = (list: readonly unknown[], depth: number): unknown => {
    const kept: unknown[] = []
    let changed = false
    let before: unknown
    for (const item of list) {
      if (left-- <= 0) return [...kept, `[${list.length - kept.length} more]`]
      const clean = isOptionValue(before, item, visit) ? redacted : (secretPair(item, visit) ?? part(item, depth + 1))
      before = item
      changed ||= clean !== item
      if (clean !== dropped) kept.push(clean)
    }
    return changed ? kept : list
  }

  const members = (record: object, depth: number): unknown => {
    const kept: [string, unknown][] = []
    let changed = false
    const names = Object.keys(record)
    for (const name of names) {
      if (left-- <= 0) return Object.fromEntries([...kept, ['…', `[${names.length - kept.length} more]`]])
      const member = memberOf(record, name)
      const key = visit.key(name)
      const isSecret = visit.hides(name, member) || (isValueName(name) && visit.hides(nameIn(record), member))
      const clean = isSecret ? redacted : part(member, depth + 1)
      changed ||= clean !== member || key !== name
      if (clean !== dropped) kept.push([key, clean])
    }
    return changed ? recordOf(kept) : record
  }

  return part(value, from)
}

/** Whether an item is the value of a secret option before it, as in `["--password", "…"]`. */
const isOptionValue = (before: unknown, item: unknown, { hides }: Visit): boolean =>
  typeof before === 'string' &&
  before.startsWith('--') &&
  typeof item === 'string' &&
  !item.startsWith('-') &&
  hides(before.slice(2), /^\d{1,12}$/.test(item) ? Number(item) : item)

/** An item of a list such as `[["Authorization", "Bearer …"], …]`, if its name is secret. `["token", "asc"]` is not. */
function secretPair(item: unknown, { hides, key }: Visit): unknown {
  if (!Array.isArray(item) || item.length !== 2) return undefined
  const [name, value] = item
  const isText = typeof name === 'string' && typeof value === 'string' && value.length >= minSecretLength
  return isText && hides(name, value) ? [key(name), redacted] : undefined
}

/** The name beside a value, as in `{ "name": "DB_PASSWORD", "value": "…" }`; empty if there is none. */
function nameIn(record: object): string {
  for (const member of ['name', 'key', 'Name', 'Key']) {
    const name = Object.hasOwn(record, member) ? memberOf(record, member) : undefined
    if (typeof name === 'string') return nameOfLabel(name)
  }
  return ''
}

/** An object with these members. Numbers those whose names redaction made equal, so that none is lost. */
function recordOf(members: readonly (readonly [string, unknown])[]): object {
  const record = Object.fromEntries(members)
  if (Object.keys(record).length === members.length) return record
  const names = new Set(members.map(([name]) => name))
  const used = new Set<string>()
  const distinct = members.map(([name, member]) => {
    let own = name
    for (let count = 2; used.has(own) || (own !== name && names.has(own)); count++) own = `${name} (${count})`
    used.add(own)
    return [own, member] as const
  })
  return Object.fromEntries(distinct)
}

/** A member of an object. If a getter throws, only that member is dropped. */
function memberOf(record: object, name: string): unknown {
  try {
    return (record as Record<string, unknown>)[name]
  } catch {
    return dropped
  }
}

type ArgumentsMode = 'none' | 'shape' | 'redacted' | 'full'

export type DescribeArguments = (args: Readonly<Record<string, unknown>>) => unknown

/** Creates the function that describes arguments. Even `full` redacts the secrets in Toolway's own configuration. */
export function describeArguments(mode: ArgumentsMode, redactor: Redactor): DescribeArguments {
  if (mode === 'none') return () => undefined
  if (mode === 'shape') return (args) => shapeOf(args, redactor)
  return mode === 'redacted' ? redactor.value : redactor.known
}

const maxMembers = 64
const maxNesting = 8

/** The types and sizes in a value: `{ path: 'string(12)', lines: ['array(3)', 'number'] }`. Names are redacted. */
function shapeOf(value: unknown, redactor: Redactor, depth = 0): unknown {
  if (typeof value === 'string') return `string(${value.length})`
  if (typeof value !== 'object') return typeof value
  if (value === null) return 'null'
  if (value instanceof ExactNumber) return 'number'
  if (Array.isArray(value)) {
    const size = `array(${value.length})`
    return value.length === 0 || depth >= maxNesting ? size : [size, shapeOf(value[0], redactor, depth + 1)]
  }
  const entries = Object.entries(value)
  if (depth >= maxNesting || entries.length > maxMembers) return `object(${entries.length})`
  return Object.fromEntries(
    entries.map(([name, member]) => [redactor.text(name), shapeOf(member, redactor, depth + 1)]),
  )
}

/**
 * A JSON value as text for capture: redacted, and cut after `maxBytes`. Text that needs neither has the original bytes,
 * so that numbers stay exact and the call can be repeated. Values above the limit are never parsed.
 */
export function captureJson(redactor: Redactor, json: Json, maxBytes: number): CapturedText {
  const original = json.bytes
  const bytes = original.length
  if (bytes <= maxBytes) {
    const text = original.toString('utf8')
    const { value } = json
    const clean = redactor.whole(value)
    // Also search the text itself if it has numbers that were rounded in parsing: one of them may be a secret.
    const unchanged = longNumber.test(text) ? redactor.line(text) : text
    // Parsing keeps only the last value of a repeated key, so write the parsed text.
    const same = clean === value && !repeatsKey(original, value)
    const concealed = same ? unchanged : (JSON.stringify(clean) ?? 'null')
    if (concealed.length <= maxBytes) return { text: concealed, bytes, truncated: false, redacted: concealed !== text }
    return { text: concealed.slice(0, maxBytes), bytes, truncated: true, redacted: true }
  }
  // Redaction needs some text beyond the cut, to find a secret that crosses it.
  const read = original.subarray(0, maxBytes + searchedBeyond).toString('utf8')
  const text = redactor.beginning(read, Math.max(read.length - searchedBeyond, 0))
  return { text, bytes, truncated: true, redacted: !read.startsWith(text) }
}

const longNumber = /\d{15}/
