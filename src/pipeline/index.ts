import type { Access } from '../core/access.ts'
import type { Audit, Operation } from '../core/audit.ts'
import type { Call, Handler, Interceptor } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { compose } from '../core/compose.ts'
import type { Decide } from '../core/decision.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { type Result, resultOf } from '../core/result.ts'
import { type ActAs, acting } from './acting.ts'
import { approve, type NeedsApproval } from './approve.ts'
import { audit, auditedView } from './audit.ts'
import { type Check, guards } from './guards.ts'
import { attempt, observe, type Watch } from './observe.ts'
import { policy, refuseBy } from './policy.ts'
import { type RateLimits, rateLimit } from './rate-limit.ts'
import { type Recheck, recheck } from './recheck.ts'
import type { Refusals } from './refusals.ts'
import { recordRejections } from './rejections.ts'
import { subscribing } from './subscribing.ts'
import { timeout } from './timeout.ts'
import { type Validate, validate } from './validate.ts'

export interface PipelineOptions {
  readonly view: Access['view']
  readonly watch: Watch
  readonly audit: Audit
  /** Keeps refusals from filling the record; it outlives a configuration. */
  readonly refusals: Refusals
  readonly decide: Decide
  /** What is denied is answered as if it did not exist. */
  readonly hideDenied?: boolean
  /** The caller as the agent that the arguments of a meta-tool name; throws where it may not be that one. */
  readonly actAs?: ActAs
  readonly validate: Validate
  /** What looks at the arguments of a server's tools, by server. */
  readonly guards: ReadonlyMap<string, Check>
  readonly limits: RateLimits
  readonly needsApproval: NeedsApproval
  /** What policy says now, where it is no longer the one of this pipeline. */
  readonly recheck: Recheck
  readonly cache: Interceptor
  /** Scans results, where that is asked for. */
  readonly scan?: Interceptor | undefined
  readonly retry: Interceptor
  readonly breaker: Interceptor
  readonly bulkhead: Interceptor
  readonly clock: Clock
  readonly log: Log
}

/** The ways in that end at an entry, and the one that shows what there is. */
export type Pipeline = Pick<Access, 'handle' | 'complete' | 'relay' | 'subscribe' | 'view' | 'rejected'>

/**
 * The order is the architecture, written once. What stands left of `retry` runs once per call, what stands right of
 * it once per attempt. What is not a call meets the same decision and leaves the same record.
 */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { decide, refusals, watch, clock } = options
  const refuse = refuseBy(options.view, options.hideDenied ?? false)
  const recorded = (operation?: Operation): Interceptor[] => [
    ...acting(options.actAs),
    ...observe(watch, operation),
    audit(options.audit, decide, operation, refusals),
    policy(decide, refuse),
  ]
  const checked = [
    validate(options.validate),
    guards(options.guards),
    rateLimit(options.limits),
    approve(options.needsApproval, clock),
    options.cache,
  ]
  const scanned = options.scan ? [options.scan] : []
  const repeated = [timeout(clock), options.retry]
  const perAttempt = [...attempt(watch), options.breaker, options.bulkhead, recheck(options.recheck, refuse)]

  const handle = compose([...recorded(), ...checked, ...scanned, ...repeated, ...perAttempt], (call) =>
    call.entry.run(call),
  )
  const complete = compose(
    [...recorded('complete'), rateLimit(options.limits), ...repeated, ...perAttempt],
    (call) => call.entry.complete?.(call) ?? Promise.resolve(noCompletions),
  )
  return {
    handle,
    complete,
    relay: (method, call) =>
      compose([...recorded(method), ...scanned, timeout(clock), ...perAttempt], (allowed) => relayed(method, allowed))(
        call,
      ),
    async subscribe(caller, { entry, uri = entry.name }, updated) {
      const call = subscribing(caller, entry, uri)
      // Who may no longer read it hears no more of it.
      const told = () => {
        if (options.recheck(call)?.allowed !== false) updated()
      }
      let subscription = nothingToFollow
      const follow: Handler = async () => {
        subscription = (await entry.subscribe?.(caller, uri, told)) ?? nothingToFollow
        return resultOf({})
      }
      await compose([...recorded('subscribe'), guards(options.guards), rateLimit(options.limits)], follow)(call)
      return subscription
    },
    rejected: recordRejections(options.audit, refusals, options.log),
    view: (caller) => auditedView(options.view(caller), caller, options.audit, refusals),
  }
}

function relayed(method: string, call: Call): Promise<Result> {
  const { entry } = call
  if (entry.relay) return entry.relay(method, call)
  const sentence = `${entry.server}.${entry.name} has started nothing that ${method} could be about.`
  return Promise.reject(new ToolwayError('INVALID_ARGUMENTS', sentence, { server: entry.server }))
}

const noCompletions = resultOf({ completion: { values: [], total: 0, hasMore: false } })

/** A source that never tells of changes is followed in vain, which is no error. */
const nothingToFollow: AsyncDisposable = { async [Symbol.asyncDispose]() {} }
