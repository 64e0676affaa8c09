import { randomUUID } from 'node:crypto'
import type { Access, LookupOptions, Page, View } from '../core/access.ts'
import type { Audit, AuditEnd, AuditSubject, Operation } from '../core/audit.ts'
import { type Call, type CallCheck, type Caller, type Handler, waitedMs } from '../core/call.ts'
import { type Decide, type Decision, type Denial, refusalOf } from '../core/decision.ts'
import type { Entry, EntryOverride, Kind } from '../core/entry.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import { type AuditedEnding, type CallOutcome, endOfError, endOfResult } from '../core/outcome.ts'
import { metaSource } from '../core/source.ts'
import type { ServerGuards } from './checks.ts'
import { beginObserved, endObserved, type Watch } from './observe.ts'
import type { Note, Refusals, Who } from './refusals.ts'

const operations: Readonly<Record<Kind, Operation>> = {
  tool: 'call_tool',
  resource: 'read_resource',
  template: 'read_resource',
  prompt: 'get_prompt',
  skill: 'read_resource',
}

export interface RecordOptions {
  readonly watch: Watch
  readonly audit: Audit
  readonly decide: Decide
  readonly refuse: RefuseCall
  readonly refusals: Refusals
  /** Defaults to the usual operation for the entry's kind. */
  readonly operation?: Operation | undefined
}

/**
 * Runs a call and records it: makes the policy decision once, audits the call before and after it runs (F11), refuses
 * what the policy denies or a check refuses, and tells the observers. A response is sent only after its record is as
 * durable as `audit.sync` demands. Denials above a principal's limit are counted instead of being audited one by one (B7).
 */
export const recordCall =
  (options: RecordOptions, checks: readonly CallCheck[], next: Handler): Handler =>
  async (asked) => {
    const { watch, audit, refusals, refuse } = options
    const operation = options.operation ?? operations[asked.entry.kind]
    const observation = beginObserved(watch, asked, operation)
    const { call } = observation ?? { call: asked }
    const completed = call.entry.override === undefined ? call : withAllArguments(call, call.entry.override)
    let outcome = unknownOutcome
    try {
      const decision = decided(call, operation, options)
      const note = decision.allowed ? refusals.settle() : noteOf(call.caller, whoOf(call.caller), refusals)
      const subject = subjectOf(call, operation, note !== undefined)
      const begun = audit.begin({ ...subject, arguments: argumentsOf(completed) })
      if (begun) await begun
      const start = performance.now()
      if (call.trail) call.trail.decided = start
      const record = (ending: AuditedEnding) =>
        audit.end({ ...subject, ...ending, ...note, ...whatTrailTells(call), latency_ms: since(start, call) })
      try {
        if (!decision.allowed) return await refuse(call, decision)
        // The first check validates the arguments that the caller sent; all else sees those that the server gets.
        let checked = call
        for (const check of checks) {
          const waiting = check(checked)
          if (waiting) await waiting
          checked = completed
        }
        const result = await next(completed)
        const end = endOfResult(result, decision.rule)
        outcome = end.outcome
        // Avoid a needless `await`, which would delay the result: reads rarely have anything to wait for.
        const waiting = record(end.ending)
        if (waiting) await waiting
        return result
      } catch (thrown) {
        // If the record could not be written, do not try to record that failure as well.
        const isUnrecorded = thrown instanceof ToolwayError && thrown.code === 'AUDIT_UNAVAILABLE'
        if (!isUnrecorded) await record(endOfError(thrown).ending)
        throw thrown
      }
    } catch (thrown) {
      outcome = endOfError(thrown).outcome
      throw thrown
    } finally {
      if (observation) endObserved(watch, observation, outcome)
    }
  }

const withAllArguments = (call: Call, override: EntryOverride): Call => ({
  ...call,
  input: { ...call.input, arguments: override.complete(call.input.arguments) },
})

const unknownOutcome: CallOutcome = { kind: 'failed' }

/** Makes the policy decision. If that throws, the failure is audited and the call does not run. */
function decided(call: Call, operation: Operation, { decide, audit }: RecordOptions): Decision {
  try {
    return decide(call.caller, call.entry)
  } catch (thrown) {
    const sentence = 'The policy could not be evaluated for this call, so the call was not run.'
    const details = { server: call.entry.server, auditReason: 'decision_failed', cause: thrown }
    const failure = new ToolwayError('INTERNAL', sentence, details)
    const subject = subjectOf(call, operation, true)
    audit.end({ ...subject, ...endOfError(failure).ending, detail: String(thrown), latency_ms: 0 })?.catch(() => {})
    throw failure
  }
}

/** Who approved the call, and the outcomes of several attempts. */
function whatTrailTells({ trail }: Call): Pick<AuditEnd, 'approval' | 'approver' | 'attempts'> | undefined {
  if (trail === undefined || (trail.approval === undefined && trail.steps.length < 2)) return undefined
  const { approval } = trail
  const attempts = trail.steps.filter(({ name }) => name === 'attempt')
  return {
    ...(approval && { approval: approval.decision, approver: approval.by }),
    ...(attempts.length > 1 && { attempts: attempts.map(({ error }) => error ?? 'ok') }),
  }
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
    served: entry.override?.name,
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
  {
    audit,
    refusals,
    denied,
  }: Pick<RecordOptions, 'audit' | 'refusals'> & { readonly denied?: CountDenial | undefined },
): View {
  const subject = (lookup: Lookup) => ({ call: randomUUID(), ...whoOf(caller), ...lookup, write: false })

  const recordFailure = (lookup: Lookup, thrown: unknown, start: number) => {
    // Retryable failures, such as an unreachable server, are not refusals and are not counted as such.
    const note = ToolwayError.from(thrown).kind.retryable ? {} : noteOf(caller, whoOf(caller), refusals)
    // `brief` truncates the name in the record: the name is untrusted and can be of any length.
    const failed = { ...subject(lookup), ...named(lookup, thrown), brief: true } as const
    return audit.end({ ...failed, ...endOfError(thrown).ending, ...note, latency_ms: since(start) })
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
      audit
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
  ({ decide, unserved }: Recheck, refuse: RefuseCall): CallCheck =>
  (call) => {
    const decision = decide(call)
    if (decision?.allowed === false) return refuse(call, decision)
    const error = unserved(call)
    if (error) throw error
    return undefined
  }
