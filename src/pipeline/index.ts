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
import { guards, type RateLimits, rateLimit, type ServerGuards, type Validate, validate } from './checks.ts'
import type { Watch } from './observe.ts'
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
import { limitResults, type ResultStepOptions } from './results/limit-results.ts'
import { timeout } from './timeout.ts'

/** Who may call what. */
export interface PipelinePolicy {
  readonly view: Access['view']
  readonly decide: Decide
  /** Whether denied entries look as if they did not exist. */
  readonly hideDenied?: boolean
  readonly actAs?: ActAs
}

/** What is recorded of calls. */
export interface PipelineRecords {
  readonly watch: Watch
  readonly audit: Audit
  /** Limits how many refusals are audited; outlives a configuration. */
  readonly refusals: Refusals
  readonly denied?: CountDenial
  /** Captures the content of calls. Undefined if no server or agent opted in, so that calls cost nothing extra. */
  readonly capture?: Interceptor | undefined
  readonly log: Log
}

/** What a call must pass before it is sent. */
export interface PipelineChecks {
  readonly validate: Validate
  readonly guards: ServerGuards
  readonly limits: RateLimits
  readonly approval: ApproveOptions
  /** Checks calls again if the configuration has changed since this pipeline was built. */
  readonly recheck: Recheck
}

/** How a call is sent. */
export interface PipelineAttempts {
  /** Undefined if nothing is cached. */
  readonly cache?: Interceptor | undefined
  readonly scan?: Interceptor | undefined
  /** Undefined if no result is ever cut or made compact. */
  readonly results?: ResultStepOptions | undefined
  readonly retry: Interceptor
  readonly breaker: AttemptStep
  readonly bulkhead: AttemptStep
}

export interface PipelineOptions {
  readonly policy: PipelinePolicy
  readonly records: PipelineRecords
  readonly checks: PipelineChecks
  readonly attempts: PipelineAttempts
  readonly clock: Clock
}

export type Pipeline = Pick<Access, 'handle' | 'complete' | 'relay' | 'answerChat' | 'subscribe' | 'view' | 'rejected'>

/**
 * Defines the order of a call: record and decide; validate, guards, rate limit, approve; result limit; cache, scan;
 * timeout and retry; then, for each attempt, breaker, bulkhead, recheck, guards and the entry. Completions, relayed
 * requests and subscriptions get the same decision and the same audit record as calls.
 */
export function createPipeline({ policy, records, checks, attempts, clock }: PipelineOptions): Pipeline {
  const { decide, actAs } = policy
  const { audit, refusals, watch, denied } = records
  const refuse = refuseBy(policy.view, policy.hideDenied ?? false)
  const recording = { watch, audit, decide, refuse, refusals }
  /** Records the call, and passes it on if the policy and the checks allow it. */
  const recorded = (operation: Operation | undefined, checked: readonly CallCheck[], next: Handler): Handler => {
    const record = recordCall({ ...recording, operation }, checked, next)
    const capture = operation === undefined ? records.capture : undefined
    return capture ? (call) => capture(call, record) : record
  }
  const acting = (handler: Handler): Handler => (actAs ? (call) => handler(asNamed(call, actAs)) : handler)
  /** The audited form of each view, which belongs to one caller. */
  const audited = new WeakMap<View, View>()
  const limit = rateLimit(checks.limits)
  const guard = guards(() => checks.guards)
  const scanned = attempts.scan ? [attempts.scan] : []
  const limited = [timeout(clock), attempts.retry]
  const steps = [attempts.breaker, attempts.bulkhead, asStep(recheck(checks.recheck, refuse))]
  const send = attemptInSteps(watch, [...steps, asStep(guards(checks.recheck.guards))], runEntry)
  const cached = attempts.cache ? [attempts.cache] : []
  const callChecks = [validate(checks.validate), guard, limit, approve(checks.approval, clock)]
  const run = compose([...cached, ...scanned, ...limited], send)
  const whole = recorded(undefined, callChecks, run)
  return {
    handle: attempts.results
      ? withResultLimit(
          attempts.results,
          whole,
          recorded(undefined, callChecks, compose([limitResults(attempts.results)], run)),
          actAs,
        )
      : acting(whole),
    complete: acting(recorded('complete', [limit], compose(limited, attemptInSteps(watch, steps, completeArgument)))),
    relay(method, call) {
      const relaying = attemptInSteps(watch, steps, (allowed) => relayed(method, allowed))
      return acting(recorded(method, [], compose([...scanned, timeout(clock)], relaying)))(call)
    },
    async answerChat(request, answer) {
      let answering = false
      const answerAllowed: Handler = async (call) => {
        // Refuses a caller that has not chosen one of its agents: a chat, unlike a meta-tool, has no argument for that.
        actAs?.(call, undefined)
        answering = true
        await answer()
        return resultOf({})
      }
      const chat = { ...recording, watch: { ...watch, observers: [] }, operation: 'chat' }
      try {
        await recordCall(chat, [limit], answerAllowed)(chatting(request))
      } catch (thrown) {
        if (!answering) countDenial(thrown, denied)
        throw thrown
      }
    },
    subscribe(caller, { entry, uri = entry.name }, updated) {
      const call = subscribing(caller, entry, uri)
      const subscribed = (follow: Handler) => acting(recorded('subscribe', [guard, limit], follow))(call)
      // Stop sending updates when the policy no longer allows the caller to read the resource.
      return followResource(call, uri, subscribed, () => {
        if (checks.recheck.decide(call)?.allowed !== false) updated()
      })
    },
    rejected: recordRejections(audit, refusals, records.log),
    view(caller) {
      const view = policy.view(caller)
      const known = audited.get(view) ?? auditedView(view, caller, { audit, refusals, denied })
      audited.set(view, known)
      return known
    },
  }
}

/** Takes calls whose results have a limit to their own handler. In one function, and without calling any for the choice. */
const withResultLimit =
  ({ limits }: ResultStepOptions, whole: Handler, cut: Handler, actAs: ActAs | undefined): Handler =>
  (call) => {
    const { agent, client } = call.caller
    const { agents, maxTokens, clients, isForAll } = limits
    const max = agents.get(agent) ?? maxTokens ?? clients.get(client) ?? limits.ofClient(client)
    const handler = call.resultShare !== undefined && (isForAll || max > 0) ? cut : whole
    return handler(actAs ? asNamed(call, actAs) : call)
  }

const completeArgument: Handler = (call) => call.entry.complete?.(call) ?? Promise.resolve(noCompletions)

/** Subscribes in a recorded call. The subscription ends if its record cannot be written. */
async function followResource(
  { entry, caller }: Call,
  uri: string,
  recorded: (follow: Handler) => Promise<unknown>,
  updated: () => void,
): Promise<AsyncDisposable> {
  let subscription = nothingToFollow
  try {
    await recorded(async () => {
      subscription = (await entry.subscribe?.(caller, uri, updated)) ?? nothingToFollow
      return resultOf({})
    })
  } catch (error) {
    // The audit log may fail after the server has accepted the subscription.
    await subscription[Symbol.asyncDispose]()
    throw error
  }
  return subscription
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
