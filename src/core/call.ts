import type { Entry } from './entry.ts'
import type { Json } from './json.ts'
import type { Result } from './result.ts'
import type { TraceContext } from './trace-context.ts'
import type { Trail } from './trail.ts'

/** One operation. Immutable: a layer changes it with `next({ ...call, … })`. */
export interface Call {
  readonly id: string
  /** Set when a meta-tool, the chat loop or a program calls back in. */
  readonly parent?: string
  readonly caller: Caller
  readonly entry: Entry
  readonly input: Input
  readonly signal: AbortSignal
  readonly peer: Peer
  /** What its door wants to see of the entry and the arguments before it runs; throws where they do not fit. */
  readonly admit?: () => void
  /** The rule by which this very call needs a person's yes, where its entry does not need one anyway. */
  readonly approval?: string
  /** Asked for by the caller, and a hard limit; the timeout of the entry otherwise, which progress restarts. */
  readonly timeoutMs?: number
  /** What the caller calls that limit, where it is not `timeout_ms`. */
  readonly timeoutKey?: string
  /** To be called when the server reports progress; set where that gives the call more time (V4). */
  readonly progressed?: (() => void) | undefined
  /** What happens to it is noted here, once it is in the pipeline. */
  readonly trail?: Trail
  /** Where it stands in a trace, if somebody traces it. */
  readonly trace?: TraceContext
}

export interface Input {
  readonly arguments: Json<Record<string, unknown>>
  /** Which resource to read, as its source spells it: an entry may be a template that stands for many. */
  readonly uri?: string
  /** The caller's `_meta`, without what belongs to one hop only. */
  readonly meta: Readonly<Record<string, unknown>>
  /** Whatever else the caller's params hold (a task, the answers of another round): it goes on as it came. */
  readonly rest?: Readonly<Record<string, unknown>>
}

/** An authenticated connection, acting as one agent. */
export interface Caller {
  readonly agent: string
  /** The agent that it asked to be, if any: what that comes to may change with the rules. */
  readonly asked?: string
  /** The agents that its credential may act as; `*` is all of them. */
  readonly agents: readonly string[] | '*'
  /** Who the credential says this is: sessions and caches belong to it. */
  readonly principal: string
  readonly authenticated: boolean
  readonly admin: boolean
  readonly session: string
  readonly address?: string
  readonly capabilities: Capabilities
  /** The way to its client outside any call, where there is one. */
  readonly peer?: Peer
}

/** The way back: to this call's caller and to no other. */
export interface Peer {
  /** The caller takes an answer that asks for more and comes again with it; others are asked in mid-call. */
  readonly rounds: boolean
  /** From which level on the caller wants log messages; none if undefined. */
  readonly logLevel: LogLevel | undefined
  /** What came over the wire, for whoever watches: the request's id and the revision it was written in. */
  readonly request?: { readonly id: string | number; readonly revision: string }
  notify(method: string, params: Json): void
  ask(method: string, params: Json, signal: AbortSignal): Promise<Json>
}

export type Handler = (call: Call) => Promise<Result>
export type Interceptor = (call: Call, next: Handler) => Promise<Result>

/** What a client says it can be asked for, as it declared it: servers are told the same. */
export type Capabilities = Readonly<Record<string, unknown>>

/** Log levels from the chattiest to the gravest. */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof logLevels)[number]

const profiles = new WeakMap<Capabilities, string>()

/** Equal for clients that declared the same, whatever the order in which they did. */
export function profileOf(capabilities: Capabilities): string {
  // Asked several times for each call, and a session's are always the same object.
  const known = profiles.get(capabilities)
  if (known !== undefined) return known
  const profile = JSON.stringify(sorted(capabilities))
  profiles.set(capabilities, profile)
  return profile
}

/** Whether a server may turn to this client in the middle of a call. */
export const canBeAsked = (capabilities: Capabilities): boolean =>
  ['sampling', 'elicitation', 'roots'].some((name) => capabilities[name] !== undefined)

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
