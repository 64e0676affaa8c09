import { hash } from 'node:crypto'
import type { Call, Caller } from '../../core/call.ts'
import { type Capabilities, canBeAsked, profileOf } from '../../core/capabilities.ts'
import { canonical, canonicalValue, quoted } from './canonical.ts'
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
