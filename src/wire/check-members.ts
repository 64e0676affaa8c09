import { elements, members, OPEN_ARRAY, OPEN_OBJECT, repeatsKey, walk } from '../json/json-text.ts'
import { jsonValue } from '../json/parse-json.ts'
import { foldName } from '../lib/characters.ts'
import { isRecord } from '../lib/is-record.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import { quoteAscii } from '../lib/message-text.ts'
import type { MemberRule, MemberRules } from './defined-members.ts'

/** Determines what a message may contain: its protocol revision, and the extensions that both sides declared. */
export interface Scope {
  readonly revision: string
  extension?(name: string): boolean
}

/** Thrown for a duplicate member, or for one whose name some parsers would take for a known name. */
export class AmbiguousMember extends Error {
  override readonly name = 'AmbiguousMember'
  /** The member's name, with its path. */
  member: string
  readonly #problem: string

  constructor(member: string, problem: string) {
    super()
    this.member = member
    this.#problem = problem
  }

  override get message(): string {
    return `The member ${quoteAscii(this.member)} ${this.#problem}`
  }
}

/** These members of an object; none for other values. Throws `AmbiguousMember` if one of them occurs twice. */
export function unambiguous(object: Buffer, names: readonly string[]): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>()
  walk(object, (key, start, end) => {
    if (!names.includes(key)) return true
    if (found.has(key)) throw new AmbiguousMember(key, 'occurs twice in one object: programs read it differently.')
    found.set(key, object.subarray(start, end))
    return true
  })
  return found
}

type Fields = Readonly<Record<string, unknown>>

/**
 * Returns the object with only its defined members, and adds the names of the removed ones to `leftOut`. Throws
 * `AmbiguousMember` for a name that differs from a known name only in letter case, width, white space or the like.
 */
export function definedMembers<T extends Fields>(value: T, level: MemberRules, scope: Scope, leftOut: string[]): T {
  let kept: Record<string, unknown> | undefined
  for (const name in value) {
    const inner = value[name]
    const member = Object.hasOwn(level.members, name) ? (level.members[name] as MemberRule) : undefined
    if (member === undefined) refuseMisspelt(name, level)
    if (member === undefined ? !level.open : !isDefined(member, scope)) {
      leftOut.push(name)
      kept ??= { ...value }
      delete kept[name]
      continue
    }
    const within = member?.within ?? (isRecord(inner) ? level.each?.(inner) : undefined)
    if (within === undefined || typeof inner !== 'object' || inner === null) continue
    const clean = definedWithin(name, inner, within, scope, leftOut)
    if (clean === inner) continue
    kept ??= { ...value }
    // Define the property instead of assigning it, because the name may be `__proto__`.
    Object.defineProperty(kept, name, { value: clean, enumerable: true, configurable: true, writable: true })
  }
  return (kept as T | undefined) ?? value
}

/** Checks an object or each element of a list, and prefixes reported names with `name`. */
function definedWithin(name: string, inner: object, within: MemberRules, scope: Scope, leftOut: string[]): unknown {
  const noted = leftOut.length
  const checked = (item: unknown) => (isRecord(item) ? definedMembers(item, within, scope, leftOut) : item)
  try {
    if (!Array.isArray(inner)) return checked(inner)
    const items = inner.map(checked)
    return items.every((item, index) => item === inner[index]) ? inner : items
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) thrown.member = `${name}.${thrown.member}`
    throw thrown
  } finally {
    for (let at = noted; at < leftOut.length; at++) leftOut[at] = `${name}.${leftOut[at]}`
  }
}

/** Like `definedMembers`, but keeps the members' original bytes, and also rejects duplicates at any depth. */
export function definedBytes(bytes: Buffer, level: MemberRules, scope: Scope, leftOut: string[]): Buffer {
  const value = jsonValue(bytes.toString('utf8')) as Fields
  if (repeatsKey(bytes, value)) throw duplicateIn(bytes)
  return rebuilt(bytes, value, definedMembers(value, level, scope, leftOut))
}

function rebuilt(bytes: Buffer, value: unknown, kept: unknown): Buffer {
  if (value === kept) return bytes
  if (Array.isArray(value) && Array.isArray(kept)) {
    const items = (elements(bytes) ?? []).map((slice, index) => rebuilt(slice, value[index], kept[index]))
    return joined('[', items, ']')
  }
  const pieces: Buffer[] = []
  for (const [name, slice] of members(bytes) ?? []) {
    if (!Object.hasOwn(kept as Fields, name)) continue
    const inner = rebuilt(slice, (value as Fields)[name], (kept as Fields)[name])
    pieces.push(Buffer.concat([Buffer.from(`${JSON.stringify(name)}:`), inner]))
  }
  return joined('{', pieces, '}')
}

const joined = (start: string, pieces: readonly Buffer[], end: string): Buffer =>
  Buffer.concat([
    Buffer.from(start),
    ...pieces.flatMap((piece, index) => (index === 0 ? [piece] : [comma, piece])),
    Buffer.from(end),
  ])

const comma = Buffer.from(',')

/** An error that names the first duplicate member. The bytes must be JSON with a duplicate member. */
export function duplicateIn(bytes: Buffer): AmbiguousMember {
  const name = findDuplicate(bytes) ?? ''
  return new AmbiguousMember(name, 'occurs twice in one object: send it only once.')
}

function findDuplicate(bytes: Buffer): string | undefined {
  let found: string | undefined
  const seen = new Set<string>()
  const inside = bytes[0] === OPEN_ARRAY ? (elements(bytes) ?? []) : []
  walk(bytes, (name, start, end) => {
    if (seen.has(name)) found = name
    seen.add(name)
    if (bytes[start] === OPEN_OBJECT || bytes[start] === OPEN_ARRAY) inside.push(bytes.subarray(start, end))
    return found === undefined
  })
  for (const inner of inside) found ??= findDuplicate(inner)
  return found
}

function isDefined({ since, before, extension }: MemberRule, { revision, extension: declared }: Scope): boolean {
  if ((since === undefined || revision >= since) && (before === undefined || revision < before)) return true
  return extension !== undefined && declared?.(extension) === true
}

/** Throws if a lenient parser would read an unknown name as a known one. */
function refuseMisspelt(name: string, level: MemberRules): void {
  const folded = foldName(name)
  const known =
    foldedNames(level.members).get(folded) ?? level.prefixes?.find((prefix) => isMisspelt(name, folded, prefix))
  if (known === undefined) return
  throw new AmbiguousMember(name, `may be read as "${known}": spell it exactly like that, or remove it.`)
}

const isMisspelt = (name: string, folded: string, prefix: string): boolean =>
  folded.startsWith(prefix) && !name.startsWith(prefix)

/** The known name that a parser may read instead of this one; undefined if there is none, or if this one is known. */
export function misspelling(name: string, level: MemberRules): string | undefined {
  return Object.hasOwn(level.members, name) ? undefined : foldedNames(level.members).get(foldName(name))
}

const foldedNames = memoizeByObject(
  (members: MemberRules['members']): ReadonlyMap<string, string> =>
    new Map(Object.keys(members).map((name) => [foldName(name), name])),
)
