import type { Entry } from './entry.ts'
import type { Json } from './json.ts'
import type { Result } from './result.ts'
import type { TraceContext } from './trace-context.ts'
import type { Trail } from './trail.ts'

/** One operation. Immutable: an interceptor changes it with `next({ ...call, … })`. */
export interface Call {
  readonly id: string
  /** Set if a meta-tool, the chat loop or a program makes the call. */
  readonly parent?: string
  readonly caller: Caller
  readonly entry: Entry
  readonly input: Input
  readonly signal: AbortSignal
  readonly peer: Peer
  /** Checks by the inbound protocol before the call runs; throws if entry or arguments do not fit. */
  readonly admit?: () => void
  /** Set if this particular call needs a person's approval: the rule that says so. */
  readonly approval?: string
  /** A hard limit set by the caller. Otherwise the entry's timeout applies, which progress restarts. */
  readonly timeoutMs?: number
  /** The caller's name for that limit, if it is not `timeout_ms`. */
  readonly timeoutKey?: string
  /** Call it when the server reports progress; set if that extends the timeout (V4). */
  readonly progressed?: (() => void) | undefined
  readonly trail?: Trail
  readonly trace?: TraceContext
}

export interface Input {
  readonly arguments: Json<Record<string, unknown>>
  /** The resource to read, as its source spells it; the entry may be a template for many. */
  readonly uri?: string
  /** The caller's `_meta` without hop-by-hop members. */
  readonly meta: Readonly<Record<string, unknown>>
  /** Other params of the caller (a task, responses to an input request), passed on unchanged. */
  readonly rest?: Readonly<Record<string, unknown>>
}

/** An authenticated connection, acting as one agent. */
export interface Caller {
  readonly agent: string
  /** The agent that it asked for, if any; the rules map it to `agent` and may change. */
  readonly asked?: string
  /** The agents that its credential may act as; `*` is all of them. */
  readonly agents: readonly string[] | '*'
  /** The authenticated identity, which owns sessions and cached results. */
  readonly principal: string
  readonly authenticated: boolean
  readonly admin: boolean
  readonly session: string
  readonly address?: string
  readonly capabilities: Capabilities
  /** Reaches its client outside of any call, if that is possible. */
  readonly peer?: Peer
}

/** Reaches only this call's caller. */
export interface Peer {
  /** The caller accepts input-required results and sends a follow-up; others are asked during the call. */
  readonly rounds: boolean
  /** Lowest level of log messages that the caller wants; undefined for none. */
  readonly logLevel: LogLevel | undefined
  readonly request?: { readonly id: string | number; readonly revision: string }
  notify(method: string, params: Json): void
  ask(method: string, params: Json, signal: AbortSignal): Promise<Json>
}

export type Handler = (call: Call) => Promise<Result>
export type Interceptor = (call: Call, next: Handler) => Promise<Result>

/** Client capabilities as declared; servers receive the same. */
export type Capabilities = Readonly<Record<string, unknown>>

/** In ascending order of severity. */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof logLevels)[number]

const profiles = new WeakMap<Capabilities, string>()

/** Equal for clients that declared the same, in any order. */
export function profileOf(capabilities: Capabilities): string {
  // Needed several times per call; a session always passes the same object.
  const known = profiles.get(capabilities)
  if (known !== undefined) return known
  const profile = JSON.stringify(sorted(capabilities))
  profiles.set(capabilities, profile)
  return profile
}

/** Whether a server may send requests to this client during a call. */
export const canBeAsked = (capabilities: Capabilities): boolean =>
  ['sampling', 'elicitation', 'roots'].some((name) => capabilities[name] !== undefined)

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Wraps a handler in interceptors, the first one outermost. The closures are built once, not per call. */
export const compose = (interceptors: readonly Interceptor[], last: Handler): Handler =>
  interceptors.reduceRight<Handler>((next, interceptor) => (call) => interceptor(call, next), last)

/** An interceptor that only checks. Synchronous checks, the usual case, cost no extra promise. */
export const onceFree = (check: (call: Call) => Promise<unknown> | undefined): Interceptor => {
  return (call, next) => {
    try {
      const waiting = check(call)
      return waiting ? waiting.then(() => next(call)) : next(call)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}
