import { hash } from 'node:crypto'
import { type Call, type Caller, type Capabilities, canBeAsked, profileOf } from '../../core/call.ts'
import type { Json } from '../../core/json.ts'
import { decimalForm, Numeral } from '../../lib/exact-number.ts'
import type { Plan } from './rules.ts'

/** Longer keys are kept as their hash: that nobody can find two that share one is all that is asked of it. */
const longest = 512

/**
 * All that can change the answer, in a form that is equal for equal calls. `callers` changes when something does that
 * servers can ask callers for. Undefined where the call is too long to be compared.
 *
 * Each part tells where it ends (strings stand behind their length), so that no two lists of parts make the same key.
 */
export function keyOf({ caller, input }: Call, plan: Plan, callers: string): string | undefined {
  const args = canonical(input.arguments)
  const meta = metaPart(input.meta)
  if (args === undefined || meta === undefined) return undefined
  const who = whoPart(caller, plan, callers)
  const uri = input.uri === undefined ? '' : quoted(input.uri)
  const key = `${plan.identity} ${who} ${profilePart(caller.capabilities)} ${uri} ${meta} ${args}`
  // Halves of characters look all the same to whoever writes a key as UTF-8.
  if (!key.isWellFormed()) return hash('sha256', Buffer.from(key, 'utf16le'), 'base64url')
  return key.length > longest ? hash('sha256', key, 'base64url') : key
}

function whoPart(caller: Caller, { shared, byAgent, session, learnt }: Plan, callers: string): string {
  const ofSession = session === 'caller' || (!shared && mayBeAsked(caller.capabilities))
  const ofPrincipal = ofSession || session === 'call' || learnt.private || !(shared || byAgent)
  const agent = shared ? '' : quoted(caller.agent)
  if (!ofPrincipal) return agent
  const principal = `${agent} ${quoted(caller.principal)}`
  return ofSession ? `${principal} ${quoted(caller.session)} ${callers}` : principal
}

/** Whether a server may turn to this caller; what it hears then is part of its answer. */
export const mayBeAsked = (capabilities: Capabilities): boolean => !isEmpty(capabilities) && canBeAsked(capabilities)

/** Sessions keep what they have declared as one object. */
const profiles = new WeakMap<Capabilities, string>()

/** Servers may answer more capable clients differently. */
function profilePart(capabilities: Capabilities): string {
  if (isEmpty(capabilities)) return ''
  let profile = profiles.get(capabilities)
  if (profile === undefined) {
    profile = profileOf(capabilities)
    // A declaration may be of any length.
    if (profile.length > longest) profile = hash('sha256', profile, 'base64url')
    profiles.set(capabilities, profile)
  }
  return profile
}

/** What is for us, for one hop, or for whoever follows calls through systems does not change an answer. */
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

/** Longer ones are not worth comparing: writing them anew with each call would cost more than many a call. */
const maxLength = 65_536

interface Budget {
  left: number
  /** Whether the value is all that there is to know, and not what it becomes as JSON. */
  exact: boolean
}

/**
 * Arguments in a form that is the same for all that mean the same: the order of keys, escapes and the spelling of
 * numbers do not count. Numbers that a double cannot hold are those that were written, not those that they are rounded to.
 * Undefined where they are too long.
 */
export function canonical(given: Json): string | undefined {
  const budget: Budget = { left: maxLength, exact: true }
  const text = write(given.exact, budget)
  if (budget.left < 0) return undefined
  return budget.exact ? text : write(JSON.parse(given.bytes.toString('utf8')), { left: maxLength, exact: true })
}

/** The same for a value that is sent on as it is. */
export function canonicalValue(value: unknown): string | undefined {
  const budget: Budget = { left: maxLength, exact: true }
  const text = write(value, budget)
  if (budget.left < 0) return undefined
  return budget.exact ? text : JSON.stringify(value)
}

/** Strings are written as they are, behind their length: nothing in them can be taken for something else. */
const quoted = (text: string): string => `${text.length}:${text}`

function write(value: unknown, budget: Budget): string {
  switch (typeof value) {
    case 'string':
      budget.left -= value.length
      return budget.left < 0 ? '' : quoted(value)
    case 'number':
      budget.left -= 8
      // Infinity and NaN are null in JSON.
      if (!Number.isFinite(value)) budget.exact = false
      return value === 0 && 1 / value < 0 ? '-0' : `${value}`
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      budget.left -= 2
      if (value === null || budget.left < 0) return 'null'
      return Array.isArray(value) ? writeArray(value, budget) : writeObject(value, budget)
    default:
      // What has no form in JSON is told by the bytes that stand for it.
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
  if (value instanceof Numeral) {
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
    // As when it is sent.
    if (inner === undefined) continue
    budget.left -= key.length
    text += `${quoted(key)}${write(inner, budget)},`
    if (budget.left < 0) break
  }
  return `${text}}`
}
