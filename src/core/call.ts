import type { Json } from '../json/json.ts'
import { asRecord, isRecord } from '../lib/is-record.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import type { ApprovalRecord } from './approval.ts'
import type { Entry } from './entry.ts'
import type { ExposureSetting } from './exposure.ts'
import type { Result } from './result.ts'
import type { TraceContext } from './trace-context.ts'

/** One operation. Immutable: an interceptor passes on a changed copy with `next({ ...call, … })`. */
export interface Call {
  readonly id: string
  /** The id of the operation that made this call; set if a meta-tool, the chat loop or a program made it. */
  readonly parent?: string
  readonly caller: Caller
  readonly entry: Entry
  readonly input: Input
  readonly signal: AbortSignal
  readonly peer: Peer
  /** A check that the inbound protocol runs before the call. Throws to refuse the entry or the arguments. */
  readonly admit?: () => void
  /** The rule that requires a person to approve this particular call, if there is one. */
  readonly approval?: string
  /** A limit that the caller sets. Unlike the entry's timeout, it is not extended by progress. */
  readonly timeoutMs?: number
  /** The limit as the caller set it, if part of it was spent before this call. For messages. */
  readonly wholeTimeoutMs?: number | undefined
  /** The name of the parameter that sets `timeoutMs`, if it is not `timeout_ms`. */
  readonly timeoutKey?: string
  /** How long an earlier attempt waited for the server before it was ended, to make this one (`retry.onTimeout`). */
  readonly earlierMs?: number
  /** To be called when the server reports progress. Set only if progress extends the timeout (V4). */
  readonly progressed?: (() => void) | undefined
  /** To be called before the source of the entry gets the call. Until then, nothing can have been sent to a server. */
  readonly starting?: (() => void) | undefined
  /**
   * The share that the result has in its caller's result budget: 1, or less in a batch. Undefined if no model gets the
   * result as it is, because a program or the chat loop made the call.
   */
  readonly resultShare?: number | undefined
  /** Until the call is observed, the trail of the call that made it. */
  readonly trail?: Trail | undefined
  readonly trace?: TraceContext
}

/** What happened during a call, for audit, metrics, traces and the dashboard. It never affects the call. */
export interface Trail {
  cache?: 'hit' | 'miss' | 'joined'
  /** The lookup in the cache, if there was one, as given by `performance.now()`. */
  lookup?: { readonly start: number; readonly end: number }
  /** When the policy had decided and the start was recorded. A number, because every call has one. */
  decided?: number
  findings?: readonly string[]
  /** A person's answer, if the call needed approval. */
  approval?: ApprovalRecord
  /** The steps, in the order in which they began. */
  readonly steps: TrailStep[]
  readonly trace?: TraceContext
  /** The trail of the call that made this one, which waits while this one does. */
  outer?: Trail
  /** How long the call has waited for people and its client, and how many such waits are open since when. */
  waits?: { endedMs: number; open: number; since: number }
}

/** The part of a call's duration that is not latency, because it waited for people. */
export const waitedMs = ({ waits }: Pick<Trail, 'waits'> = {}, now: number = performance.now()): number =>
  waits === undefined ? 0 : waits.endedMs + (waits.open > 0 ? now - waits.since : 0)

export interface TrailStep {
  /** `approve`: waiting for a person's approval. `ask`: waiting for the client's answer to a server's question. */
  readonly name: 'approve' | 'ask' | 'queue' | 'attempt'
  /** When the step began, as given by `performance.now()`. */
  readonly start: number
  end?: number
  error?: string
  /** The step's trace context, if the step has its own span. Spans for remote work become children of that span. */
  readonly trace?: TraceContext
}

export interface Input {
  readonly arguments: Json<Record<string, unknown>>
  /** The URI of the resource to read, as its source spells it. The entry may be a template for many URIs. */
  readonly uri?: string
  /** The caller's `_meta` without hop-by-hop members. */
  readonly meta: Readonly<Record<string, unknown>>
  /** Other params that the caller sent (a task, or responses to an input request), passed on unchanged. */
  readonly rest?: Readonly<Record<string, unknown>>
}

/** A client and the agent that it acts as. */
export interface Caller {
  readonly agent: string
  /** The agent that the caller asked for, if any. The policy, which a reload can change, maps it to `agent`. */
  readonly asked?: string
  /** The agents that the caller's credential may act as; `*` means all of them. */
  readonly agents: readonly string[] | '*'
  /** The authenticated identity, which owns sessions and cached results. */
  readonly principal: string
  readonly authenticated: boolean
  readonly admin: boolean
  readonly session: string
  readonly address?: string
  readonly capabilities: Capabilities
  /** The name of the client program, as it introduced itself. Anyone can claim any name. */
  readonly client?: string | undefined
  /** The named endpoint to which the client has connected. It may use what that serves. */
  readonly endpoint?: string | undefined
  /** The exposure mode that the client asked for, instead of its agent's. */
  readonly exposure?: ExposureSetting | undefined
  /** Sends messages to the caller's client outside any call, if that is possible. */
  readonly peer?: Peer
}

/**
 * Whether a caller is limited to a share of what all callers use. The operator is not: a gateway with a single user
 * keeps nothing free for others. Callers without a credential cannot be told apart, so they have no shares either.
 */
export const hasShare = ({ authenticated, admin }: Pick<Caller, 'authenticated' | 'admin'>): boolean =>
  authenticated && !admin

/** Sends notifications and requests to one caller's client. */
export interface Peer {
  /** Whether the caller answers input-required results in a follow-up request. If not, it is asked during the call. */
  readonly rounds: boolean
  /** The lowest level of log messages that the caller wants; undefined if it wants none. */
  readonly logLevel: LogLevel | undefined
  readonly request?: { readonly id: string | number; readonly revision: string } | undefined
  notify(method: string, params: Json): void
  /** Asks the caller, for the server by default. */
  ask(method: string, params: Json, signal: AbortSignal, from?: 'server' | 'toolway'): Promise<Json>
  /** Runs work with the call's timeout paused, for at most the time that a person may take to answer a question. */
  readonly paused?: (<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal) => Promise<T>) | undefined
}

/** A peer without a session of its own: `ask` answers or refuses its requests, and of notifications, it gets only progress. */
export const quietPeer = (ask: Peer['ask'], onProgress?: (params: Json) => void): Peer => ({
  rounds: false,
  logLevel: undefined,
  notify(method, params) {
    if (method === 'notifications/progress') onProgress?.(params)
  },
  ask,
})

/** A peer that forwards everything to another one, except what `changes` replaces. */
export const wrapPeer = (peer: Peer, changes: Partial<Pick<Peer, 'notify' | 'ask' | 'rounds' | 'paused'>>): Peer => ({
  rounds: peer.rounds,
  get logLevel() {
    return peer.logLevel
  },
  request: peer.request,
  notify: (method, params) => peer.notify(method, params),
  ask: (...params) => peer.ask(...params),
  paused: peer.paused,
  ...changes,
})

export type Handler = (call: Call) => Promise<Result>
export type Interceptor = (call: Call, next: Handler) => Promise<Result>

/** The capabilities that a client declared. Servers receive those that Toolway knows. */
export type Capabilities = Readonly<Record<string, unknown>>

/** The extensions that clients can use through Toolway: tasks, MCP Apps, and skills. */
export const tasksExtension = 'io.modelcontextprotocol/tasks'
export const uiExtension = 'io.modelcontextprotocol/ui'
export const skillsExtension = 'io.modelcontextprotocol/skills'

export const declaresExtension = ({ extensions }: Capabilities, name: string): boolean =>
  asRecord(extensions)[name] !== undefined

/** The MCP log levels, in ascending order of severity. */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof logLevels)[number]

/** The client capabilities that Toolway knows. Servers receive no others. */
const knownCapabilityTree: CapabilityTree = {
  roots: { listChanged: {} },
  sampling: { context: {}, tools: {} },
  elicitation: { form: {}, url: {} },
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
  extensions: { [tasksExtension]: {}, [uiExtension]: { mimeTypes: {} } },
}

interface CapabilityTree {
  readonly [name: string]: CapabilityTree
}

/** The known members of what a client declared, in a fixed order. */
export const knownCapabilities = (declared: Capabilities): Capabilities =>
  knownMembers(declared, knownCapabilityTree) as Capabilities

function knownMembers(declared: unknown, known: CapabilityTree): unknown {
  if (!isRecord(declared)) return declared
  const names = Object.keys(known).filter((name) => declared[name] !== undefined)
  return Object.fromEntries(names.map((name) => [name, knownMembers(declared[name], known[name] as CapabilityTree)]))
}

/**
 * A key for what a client supports. It is the same for equal known capabilities, in whatever order they were declared.
 * Cached, because each call needs it several times and a session always passes the same object.
 */
export const profileOf = memoizeByObject((capabilities: Capabilities): string =>
  JSON.stringify(knownCapabilities(capabilities)),
)

/**
 * A key for what servers list, which may depend on what they can ask the client for and on the extensions that it
 * declares. There are 32, so that nothing else bounds what is kept for each.
 */
export const listProfile = ({ roots, sampling, elicitation, extensions }: Capabilities): number =>
  Number(roots !== undefined) +
  2 * Number(sampling !== undefined) +
  4 * Number(elicitation !== undefined) +
  (extensions === undefined ? 0 : extensionBits({ extensions }))

const extensionBits = (capabilities: Capabilities): number =>
  8 * Number(declaresExtension(capabilities, tasksExtension)) +
  16 * Number(declaresExtension(capabilities, uiExtension))

/** A caller, as everything that is kept for one caller identifies it: two agents of one session are two callers (W1). */
export type CallerIdentity = Pick<Caller, 'principal' | 'agent' | 'session' | 'capabilities'>

/** A key for what outlives sessions, such as a task. No agent's name contains a line break, so keys are unique. */
export const ownerKey = ({ principal, agent }: Pick<Caller, 'principal' | 'agent'>): string => `${agent}\n${principal}`

/** A key for what ends with a session. */
export const callerKey = (caller: Omit<CallerIdentity, 'capabilities'>): string =>
  `${ownerKey(caller)}\n${caller.session}`

/** A key for what depends on the client too: a server may answer differently to clients that declare more. */
export const clientKey = (caller: CallerIdentity): string => `${callerKey(caller)}\n${profileOf(caller.capabilities)}`

/** Whether this client supports at least one kind of request that a server may send during a call. */
export const canBeAsked = ({ sampling, elicitation, roots }: Capabilities): boolean =>
  sampling !== undefined || elicitation !== undefined || roots !== undefined

/** Passes a call to the source of its entry. */
export const runEntry: Handler = (call) => {
  call.starting?.()
  return call.entry.run(call)
}

/** Wraps a handler in interceptors, the first one outermost. The closures are built once, not per call. */
export const compose = (interceptors: readonly Interceptor[], last: Handler): Handler =>
  interceptors.reduceRight<Handler>((next, interceptor) => (call) => interceptor(call, next), last)

/** Throws to refuse a call. Returns a promise only if the call has to wait. */
export type CallCheck = (call: Call) => Promise<unknown> | undefined
