import { randomUUID } from 'node:crypto'
import type { Access, LookupOptions, Page, View } from '../core/access.ts'
import type { Audit, AuditEnd, AuditSubject, Operation } from '../core/audit.ts'
import { type Call, type Caller, type Interceptor, waitedMs } from '../core/call.ts'
import { type Decide, type Decision, type Denial, refusalOf } from '../core/decision.ts'
import type { Entry, Kind } from '../core/entry.ts'
import { type ErrorCode, ServerError, ToolwayError } from '../core/errors.ts'
import type { Result } from '../core/result.ts'
import { metaSource } from '../core/source.ts'
import type { Note, Refusals, Who } from './refusals.ts'
import type { ServerGuards } from './validate.ts'

export const operations: Readonly<Record<Kind, Operation>> = {
  tool: 'call_tool',
  resource: 'read_resource',
  template: 'read_resource',
  prompt: 'get_prompt',
}

export interface AuditOptions {
  readonly log: Audit
  readonly decide: Decide
  readonly refuse: RefuseCall
  /** Defaults to the usual operation for the entry's kind. */
  readonly operation: Operation | undefined
  readonly refusals: Refusals
}

/**
 * Makes the policy decision for a call once, audits the call before and after it runs (F11), and refuses what the
 * policy denies. A response is sent only after its record is as durable as `audit.sync` demands. Denials above a
 * principal's limit are counted instead of being audited one by one (B7).
 */
export const auditAndDecide = ({ log, decide, refuse, operation, refusals }: AuditOptions): Interceptor => {
  /** Makes the policy decision. If that throws, the failure is audited and the call does not run. */
  const decided = (call: Call): Decision => {
    try {
      return decide(call.caller, call.entry)
    } catch (thrown) {
      const subject = subjectOf(call, operation ?? operations[call.entry.kind], true)
      const sentence = 'The policy could not be evaluated for this call, so the call was not run.'
      const details = { server: call.entry.server, auditReason: 'decision_failed', cause: thrown }
      const failure = new ToolwayError('INTERNAL', sentence, details)
      log.end({ ...subject, ...endingOf(failure), detail: String(thrown), latency_ms: 0 })?.catch(() => {})
      throw failure
    }
  }

  return async (call, next) => {
    const decision = decided(call)
    const { allowed, rule } = decision
    const note = allowed ? refusals.settle() : noteOf(call.caller, whoOf(call.caller), refusals)
    const subject = subjectOf(call, operation ?? operations[call.entry.kind], note !== undefined)
    const begun = log.begin({ ...subject, arguments: argumentsOf(call) })
    if (begun) await begun
    const start = performance.now()
    if (call.trail) call.trail.decided = start
    const ended = (how: Ending) =>
      log.end({ ...subject, ...how, ...note, ...approvalOf(call), ...attemptsOf(call), latency_ms: since(start, call) })
    try {
      const result = await (decision.allowed ? next(call) : refuse(call, decision))
      const waiting = ended({ ...outcomeOf(result, rule), ...result.listing })
      // Avoid a needless `await`, which would delay the result: reads rarely have anything to wait for.
      if (waiting) await waiting
      return result
    } catch (thrown) {
      // If the record could not be written, do not try to record that failure as well.
      if (!(thrown instanceof ToolwayError) || thrown.code !== 'AUDIT_UNAVAILABLE') await ended(endingOf(thrown))
      throw thrown
    }
  }
}

function approvalOf({ trail }: Call): Pick<AuditEnd, 'approval' | 'approver'> | undefined {
  const approval = trail?.approval
  return approval && { approval: approval.decision, approver: approval.by }
}

function attemptsOf({ trail }: Call): Pick<AuditEnd, 'attempts'> | undefined {
  const { steps = [] } = trail ?? {}
  if (steps.length < 2) return undefined
  const attempts = steps.filter(({ name }) => name === 'attempt')
  return attempts.length < 2 ? undefined : { attempts: attempts.map(({ error }) => error ?? 'ok') }
}

const outcomeOf = ({ refusal, isError, findings }: Result, rule: string): Ending =>
  refusal ? endingOf(refusal) : { decision: 'ALLOW', rule, is_error: isError, findings }

export type Ending = Omit<AuditEnd, keyof AuditSubject | 'latency_ms'>

export function endingOf(thrown: unknown): Ending {
  if (thrown instanceof ServerError) return { decision: 'ERROR', reason: 'server_error', is_error: true }
  const error = ToolwayError.from(thrown)
  const { code, details } = error.truth
  const decision = error.isDenial ? 'DENY' : code === 'TIMEOUT' ? 'TIMEOUT' : 'ERROR'
  const { rule, auditReason = code.toLowerCase() } = details
  return { decision, reason: auditReason, rule, code, is_error: true }
}

const since = (start: number, call?: Call): number =>
  Math.round((performance.now() - start - waitedMs(call?.trail)) * 1000) / 1000

/** Counts a refusal and returns the note for its record. Refusals for the operator's own credential are not limited. */
const noteOf = ({ admin }: Caller, who: Who, refusals: Refusals): Note => (admin ? {} : refusals.admit(who))

const whoOf = ({ agent, principal, authenticated, address }: Caller): Who => ({
  agent,
  principal,
  address,
  anonymous: authenticated ? undefined : true,
})

/** Builds the subject as one literal of a fixed shape: every call creates one, and merging objects was slower. */
function subjectOf({ id, parent, caller, entry, input }: Call, operation: Operation, refused: boolean): AuditSubject {
  return {
    call: id,
    parent,
    agent: caller.agent,
    principal: caller.principal,
    anonymous: caller.authenticated ? undefined : true,
    address: caller.address,
    operation,
    kind: entry.kind,
    server: entry.server,
    tool: entry.name,
    target: entry.server === metaSource ? targetOf(input) : undefined,
    write: mayWrite(entry, operation),
    brief: refused ? true : undefined,
  }
}

/** The server that a meta-tool is asked about. The record names it even if no arguments are recorded. */
function targetOf({ arguments: { value } }: Call['input']): string | undefined {
  const { server } = value
  return typeof server === 'string' ? server : undefined
}

/** Whether a call may change something. A call that carries other calls does not; its inner calls may. */
const mayWrite = ({ traits }: Entry, operation: Operation): boolean =>
  !traits.readOnly && !traits.carries && operation !== 'complete' && operation !== 'subscribe'

/** The arguments to audit. For a resource template they include the URI, so that the record names the resource. */
function argumentsOf({ input, entry }: Call): Readonly<Record<string, unknown>> {
  const { uri } = input
  return uri === undefined || uri === entry.name ? input.arguments.exact : { ...input.arguments.exact, uri }
}

/** Counts a refusal that observers do not see, because it never became a call. */
export type CountDenial = (code: ErrorCode) => void

export function countDenial(thrown: unknown, denied: CountDenial | undefined): void {
  const error = ToolwayError.from(thrown)
  if (error.isDenial) denied?.(error.truth.code)
}

type Lookup = Pick<AuditSubject, 'operation' | 'kind' | 'server' | 'tool' | 'parent'>

/**
 * A view that audits listings and failed lookups: a lookup that finds nothing never becomes a call and would leave no
 * trace. Too many failed lookups are refused and counted (B7). `denied` is called for lookups that the policy refuses.
 */
export function auditedView(
  view: View,
  caller: Caller,
  { log, refusals, denied }: Pick<AuditOptions, 'log' | 'refusals'> & { readonly denied?: CountDenial | undefined },
): View {
  const subject = (lookup: Lookup) => ({ call: randomUUID(), ...whoOf(caller), ...lookup, write: false })

  const recordFailure = (lookup: Lookup, thrown: unknown, start: number) => {
    // Retryable failures, such as an unreachable server, are not refusals and are not counted as such.
    const note = ToolwayError.from(thrown).kind.retryable ? {} : noteOf(caller, whoOf(caller), refusals)
    // `brief` truncates the name in the record: the name is untrusted and can be of any length.
    const failed = { ...subject(lookup), ...named(lookup, thrown), brief: true } as const
    return log.end({ ...failed, ...endingOf(thrown), ...note, latency_ms: since(start) })
  }

  /** The server that a failed lookup was for, if the error names one, and the entry's own name there. */
  const named = ({ kind, server, tool }: Lookup, thrown: unknown): Pick<Lookup, 'server' | 'tool'> => {
    const meant = server ?? ToolwayError.from(thrown).truth.details.server
    if (server !== undefined || meant === undefined || kind === undefined || tool === undefined) return { server, tool }
    return { server: meant, tool: view.ownName?.(kind, meant, tool) ?? tool }
  }

  const auditFailure = <T>(lookup: Lookup, search: Promise<T>): Promise<T> => {
    const start = performance.now()
    return search.catch(async (thrown) => {
      let refusal = thrown
      try {
        await recordFailure(lookup, thrown, start)
      } catch (limited) {
        refusal = limited
      }
      countDenial(refusal, denied)
      throw refusal
    })
  }

  const operationOf = (kind: Kind, { operation = operations[kind], parent }: LookupOptions = {}) => {
    return { operation, kind, parent }
  }

  const listed = (kind: Kind, cursor: string | undefined, start: number): Page => {
    try {
      return view.page(kind, cursor)
    } catch (thrown) {
      recordFailure({ operation: 'list', kind }, thrown, start)?.catch(ignored)
      throw thrown
    }
  }

  return {
    ...view,
    page(kind, cursor) {
      const start = performance.now()
      const page = listed(kind, cursor, start)
      refusals.settle()
      const shown = { decision: 'ALLOW', is_error: false, latency_ms: since(start), returned: page.count } as const
      // A listing changes nothing, so do not wait for its record. `tokens` assumes four characters per token.
      log
        .end({ ...subject({ operation: 'list', kind }), ...shown, tokens: Math.ceil(page.items.length / 4) })
        ?.catch(ignored)
      return page
    },
    resolve: (kind, spelling, options) =>
      auditFailure({ ...operationOf(kind, options), tool: spelling }, view.resolve(kind, spelling, options)),
    find: (kind, server, name, options) =>
      auditFailure({ ...operationOf(kind, options), server, tool: name }, view.find(kind, server, name, options)),
  }
}

/** Ignores a failed write, because the audit writer logs its own failures. */
const ignored = () => {}

type RefuseCall = (call: Call, denial: Denial) => Promise<never>

/** Throws the reason or, if denials are hidden, the error for an entry that does not exist. */
export const refuseBy =
  (view: Access['view'], hideDenied: boolean): RefuseCall =>
  async ({ caller, entry, signal }, denial) => {
    const refusal = refusalOf(denial, entry.server)
    if (!hideDenied) throw refusal
    const missing = await view(caller)
      .find(entry.kind, entry.server, entry.name, { signal })
      .catch((thrown: unknown) => thrown)
    throw missing instanceof ToolwayError ? missing.concealing(refusal) : refusal
  }

/** What the current configuration says about a call. Each is undefined while the call's own configuration is in force. */
export interface Recheck {
  decide(call: Call): Decision | undefined
  /** Why the call's server must not be used any more, although it may still be running for earlier calls. */
  unserved(call: Call): ToolwayError | undefined
  guards(): ServerGuards | undefined
}

/** Checks just before sending that a call is still allowed: it may have waited long for approval or in a queue. */
export const recheck =
  ({ decide, unserved }: Recheck, refuse: RefuseCall): Interceptor =>
  (call, next) => {
    const decision = decide(call)
    if (decision?.allowed === false) return refuse(call, decision)
    const error = unserved(call)
    return error ? Promise.reject(error) : next(call)
  }
