import { randomUUID } from 'node:crypto'
import type { Access, View } from '../core/access.ts'
import type { Audit, Operation } from '../core/audit.ts'
import {
  type Call,
  type CallCheck,
  type Caller,
  compose,
  type Handler,
  type Interceptor,
  quietPeer,
  runEntry,
} from '../core/call.ts'
import type { ChatRequest } from '../core/chat.ts'
import type { Clock } from '../core/clock.ts'
import type { Decide } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { type Result, resultOf } from '../core/result.ts'
import { metaSource } from '../core/source.ts'
import { Json } from '../json/json.ts'
import { type ApproveOptions, approve } from './approve.ts'
import { type AttemptStep, attemptInSteps } from './attempt.ts'
import type { Watch } from './observe.ts'
import { type RateLimits, rateLimit } from './rate-limit.ts'
import {
  auditedView,
  type CountDenial,
  countDenial,
  type Recheck,
  recheck,
  recordCall,
  refuseBy,
} from './record-call.ts'
import { type Refusals, recordRejections } from './refusals.ts'
import { timeout } from './timeout.ts'
import { guards, type ServerGuards, type Validate, validate } from './validate.ts'

export interface PipelineOptions {
  readonly view: Access['view']
  readonly watch: Watch
  /** Captures the content of calls. Undefined if no server or agent opted in, so that calls cost nothing extra. */
  readonly capture?: Interceptor | undefined
  readonly audit: Audit
  /** Limits how many refusals are audited; outlives a configuration. */
  readonly refusals: Refusals
  readonly denied?: CountDenial
  readonly decide: Decide
  /** Whether denied entries look as if they did not exist. */
  readonly hideDenied?: boolean
  readonly actAs?: ActAs
  readonly validate: Validate
  readonly guards: ServerGuards
  readonly limits: RateLimits
  readonly approval: ApproveOptions
  /** Checks calls again if the configuration has changed since this pipeline was built. */
  readonly recheck: Recheck
  /** Undefined if nothing is cached. */
  readonly cache?: Interceptor | undefined
  readonly scan?: Interceptor | undefined
  readonly retry: Interceptor
  readonly breaker: AttemptStep
  readonly bulkhead: AttemptStep
  readonly clock: Clock
  readonly log: Log
}

export type Pipeline = Pick<Access, 'handle' | 'complete' | 'relay' | 'answerChat' | 'subscribe' | 'view' | 'rejected'>

/**
 * Defines the order of a call: record and decide; validate, guards, rate limit, approve; cache, scan; timeout and retry;
 * then, for each attempt, breaker, bulkhead, recheck, guards and the entry. Completions, relayed requests and
 * subscriptions get the same decision and the same audit record as calls.
 */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { decide, audit, refusals, watch, clock } = options
  const refuse = refuseBy(options.view, options.hideDenied ?? false)
  /** Records the call, and passes it on if the policy and the checks allow it. */
  const recorded = (operation: Operation | undefined, checks: readonly CallCheck[], next: Handler): Handler => {
    const record = recordCall({ watch, audit, decide, refuse, refusals, operation }, checks, next)
    const capture = operation === undefined ? options.capture : undefined
    const captured: Handler = capture ? (call) => capture(call, record) : record
    const { actAs } = options
    return actAs ? (call) => captured(asNamed(call, actAs)) : captured
  }
  /** The audited form of each view, which belongs to one caller. */
  const audited = new WeakMap<View, View>()
  const viewOf = (caller: Caller): View => {
    const view = options.view(caller)
    const known = audited.get(view) ?? auditedView(view, caller, { audit, refusals, denied: options.denied })
    audited.set(view, known)
    return known
  }
  const limit = rateLimit(options.limits)
  const guard = guards(() => options.guards)
  const scanned = options.scan ? [options.scan] : []
  const limited = [timeout(clock), options.retry]
  const steps = [options.breaker, options.bulkhead]
  const still = recheck(options.recheck, refuse)

  const send = attemptInSteps(watch, [...steps, asStep(still), asStep(guards(options.recheck.guards))], runEntry)
  const cached = options.cache ? [options.cache] : []
  const handle = recorded(
    undefined,
    [validate(options.validate), guard, limit, approve(options.approval, clock)],
    compose([...cached, ...scanned, ...limited], send),
  )
  const completing = attemptInSteps(
    watch,
    [...steps, asStep(still)],
    (call) => call.entry.complete?.(call) ?? Promise.resolve(noCompletions),
  )
  const complete = recorded('complete', [limit], compose(limited, completing))
  return {
    handle,
    complete,
    relay(method, call) {
      const relaying = attemptInSteps(watch, [...steps, asStep(still)], (allowed) => relayed(method, allowed))
      return recorded(method, [], compose([...scanned, timeout(clock)], relaying))(call)
    },
    async answerChat(request, answer) {
      let answering = false
      const answerAllowed: Handler = async (call) => {
        // Refuses a caller that has not chosen one of its agents: a chat, unlike a meta-tool, has no argument for that.
        options.actAs?.(call, undefined)
        answering = true
        await answer()
        return resultOf({})
      }
      const unwatched = { ...watch, observers: [] }
      const chat = { watch: unwatched, audit, decide, refuse, refusals, operation: 'chat' }
      try {
        await recordCall(chat, [limit], answerAllowed)(chatting(request))
      } catch (thrown) {
        if (!answering) countDenial(thrown, options.denied)
        throw thrown
      }
    },
    async subscribe(caller, { entry, uri = entry.name }, updated) {
      const call = subscribing(caller, entry, uri)
      // Stop sending updates when the policy no longer allows the caller to read the resource.
      const notify = () => {
        if (options.recheck.decide(call)?.allowed !== false) updated()
      }
      let subscription = nothingToFollow
      const follow: Handler = async () => {
        subscription = (await entry.subscribe?.(caller, uri, notify)) ?? nothingToFollow
        return resultOf({})
      }
      try {
        await recorded('subscribe', [guard, limit], follow)(call)
      } catch (error) {
        // The audit log may fail after the server has accepted the subscription.
        await subscription[Symbol.asyncDispose]()
        throw error
      }
      return subscription
    },
    rejected: recordRejections(audit, refusals, options.log),
    view: viewOf,
  }
}

/** A check as a step of each attempt. */
const asStep =
  (check: CallCheck): AttemptStep =>
  (call) =>
    check(call)?.then(() => undefined)

function relayed(method: string, call: Call): Promise<Result> {
  const { entry } = call
  if (entry.relay) return entry.relay(method, call)
  const sentence = `${entry.server}.${entry.name} does not support ${method}.`
  return Promise.reject(new ToolwayError('INVALID_ARGUMENTS', sentence, { server: entry.server }))
}

const noCompletions = resultOf({ completion: { values: [], total: 0, hasMore: false } })

/** A subscription for a source that never reports changes. Subscribing to such a source is not an error. */
const nothingToFollow: AsyncDisposable = { async [Symbol.asyncDispose]() {} }

/** Returns the caller acting as the given agent; throws if it may not, or if no agent is given and it has none. */
type ActAs = (call: Pick<Call, 'caller' | 'entry'>, agent: string | undefined) => Caller

/**
 * Lets a caller name its agent in a meta-tool's arguments (`agent_id`). Audit, statistics, metrics, traces and limits
 * are then attributed to that agent, because its rules decide. If the caller may not act as that agent, the tool
 * reports the error and the audit record names the original caller.
 */
function asNamed(call: Call, actAs: ActAs): Call {
  if (call.entry.server !== metaSource) return call
  const { agent_id: agent } = call.input.arguments.value as { readonly agent_id?: unknown }
  if (typeof agent !== 'string') return call
  try {
    return { ...call, caller: actAs(call, agent) }
  } catch {
    return call
  }
}

/** What the rules and limits for chats apply to. Like a meta-tool, it is allowed unless denied. */
export const chatEntry: Entry = {
  ...{ kind: 'tool', server: metaSource, name: 'chat', definition: {} },
  traits: { readOnly: false, idempotent: false, timeoutMs: 0, carries: true },
  run: () => Promise.reject(new Error('a chat is not a tool')),
}

const chatting = ({ id, caller, model, mode, signal, peer }: ChatRequest): Call => ({
  ...{ id, caller, entry: chatEntry, signal, peer },
  input: { arguments: Json.of({ model, mode }), meta: {} },
})

const subscribing = (caller: Caller, entry: Entry, uri: string): Call => ({
  id: randomUUID(),
  caller,
  entry,
  input: { arguments: Json.of({}), uri, meta: {} },
  signal: new AbortController().signal,
  peer: caller.peer ?? silentPeer,
})

const silentPeer = quietPeer(() => Promise.reject(new Error('a subscription cannot send requests to the client')))
