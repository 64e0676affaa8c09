import { hash } from 'node:crypto'
import {
  type Call,
  type Caller,
  type Capabilities,
  callerKey,
  canBeAsked,
  ownerKey,
  profileOf,
} from '../../core/call.ts'
import type { Json } from '../../json/json.ts'
import { decimalForm, ExactNumber, jsonValue } from '../../json/parse-json.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import type { Plan } from './rules.ts'

/** Maximum length of a key. Longer ones are replaced by their SHA-256 hash, which practically never collides. */
const maxKey = 512

/**
 * The cache key: everything that can change the answer, equal for equal calls. `callers` changes whenever data that
 * servers can request from callers changes. Undefined if the call is too long to compare. Each part is self-delimiting
 * (strings are prefixed with their length), so different lists of parts never give the same key.
 */
export function keyOf({ caller, input }: Call, plan: Plan, callers: string): string | undefined {
  const args = canonical(input.arguments)
  const meta = metaPart(input.meta)
  if (args === undefined || meta === undefined) return undefined
  const who = whoPart(caller, plan, callers)
  const uri = input.uri === undefined ? '' : quoted(input.uri)
  const key = `${plan.identity} ${who} ${profilePart(caller.capabilities)} ${uri} ${meta} ${args}`
  // Hash as UTF-16, because UTF-8 would turn every lone surrogate into the same bytes.
  if (!key.isWellFormed()) return hash('sha256', Buffer.from(key, 'utf16le'), 'base64url')
  return key.length > maxKey ? hash('sha256', key, 'base64url') : key
}

function whoPart(caller: Caller, { shared, byAgent, session, learnt }: Plan, callers: string): string {
  const ofSession = session === 'caller' || (!shared && mayBeAsked(caller.capabilities))
  if (ofSession) return `${quoted(callerKey(caller))} ${callers}`
  if (session === 'call' || learnt.private || !(shared || byAgent)) return quoted(ownerKey(caller))
  return shared ? '' : quoted(caller.agent)
}

/** Whether the server can send this caller requests. If so, the caller's answers can influence the result. */
export const mayBeAsked = (capabilities: Capabilities): boolean => !isEmpty(capabilities) && canBeAsked(capabilities)

/** The caller's capabilities as part of the key: servers may respond differently to clients with more capabilities. */
const profilePart = memoizeByObject((capabilities: Capabilities): string => {
  const profile = isEmpty(capabilities) ? '' : profileOf(capabilities)
  return profile.length > maxKey ? hash('sha256', profile, 'base64url') : profile
})

/** Whether a metadata key has no influence on the answer: it is meant for Toolway, for one hop or for tracing. */
const isIrrelevant = (key: string): boolean =>
  key === 'progressToken' || key === 'traceparent' || key === 'tracestate' || key.startsWith('dev.toolway/')

function metaPart(meta: Readonly<Record<string, unknown>>): string | undefined {
  let relevant: Record<string, unknown> | undefined
  for (const key of Object.keys(meta)) {
    if (isIrrelevant(key)) continue
    relevant ??= Object.create(null) as Record<string, unknown>
    relevant[key] = meta[key]
  }
  return relevant === undefined ? '' : canonicalValue(relevant)
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false
  return true
}

/** Maximum length of a cached call's arguments. Canonicalizing longer ones would take longer than many calls do. */
const maxLength = 65_536

interface Budget {
  left: number
  /** False if the value differs from its JSON form, for example because of `toJSON`. */
  exact: boolean
}

/**
 * The canonical form of arguments, which is the same for any key order, escaping and number spelling. Numbers that a
 * double cannot hold keep their exact decimal value. Undefined if the arguments are too long.
 */
export function canonical(args: Json): string | undefined {
  const budget: Budget = { left: maxLength, exact: true }
  const text = write(args.exact, budget)
  if (budget.left < 0) return undefined
  return budget.exact ? text : write(jsonValue(args.bytes.toString('utf8')), { left: maxLength, exact: true })
}

/** Like `canonical`, for a value that is forwarded unchanged. */
export function canonicalValue(value: unknown): string | undefined {
  const budget: Budget = { left: maxLength, exact: true }
  const text = write(value, budget)
  if (budget.left < 0) return undefined
  return budget.exact ? text : JSON.stringify(value)
}

/** Prefixes text with its length, which makes its end unambiguous without escaping. */
const quoted = (text: string): string => `${text.length}:${text}`

function write(value: unknown, budget: Budget): string {
  switch (typeof value) {
    case 'string':
      budget.left -= value.length
      return budget.left < 0 ? '' : quoted(value)
    case 'number':
      budget.left -= 8
      // Infinity and NaN become null in JSON, so the value differs from its JSON form.
      if (!Number.isFinite(value)) budget.exact = false
      return value === 0 && 1 / value < 0 ? '-0' : `${value}`
    case 'boolean':
      budget.left -= 5
      return value ? 'true' : 'false'
    case 'object':
      budget.left -= 2
      if (value === null || budget.left < 0) return 'null'
      return Array.isArray(value) ? writeArray(value, budget) : writeObject(value, budget)
    default:
      // Values without a JSON form: fall back to the serialized bytes.
      budget.exact = false
      return ''
  }
}

function writeArray(value: readonly unknown[], budget: Budget): string {
  let text = '['
  for (const inner of value) {
    text += `${write(inner, budget)},`
    if (budget.left < 0) break
  }
  return `${text}]`
}

function writeObject(value: object, budget: Budget): string {
  if (value instanceof ExactNumber) {
    budget.left -= value.source.length
    return decimalForm(value.source)
  }
  const { toJSON } = value as { readonly toJSON?: unknown }
  if (typeof toJSON === 'function') budget.exact = false
  const keys = Object.keys(value)
  if (keys.length > 1) keys.sort()
  let text = '{'
  for (const key of keys) {
    const inner = (value as Readonly<Record<string, unknown>>)[key]
    // JSON.stringify also omits undefined members.
    if (inner === undefined) continue
    budget.left -= key.length
    text += `${quoted(key)}${write(inner, budget)},`
    if (budget.left < 0) break
  }
  return `${text}}`
}
