import { randomUUID } from 'node:crypto'
import type { Page, View } from '../core/access.ts'
import type { Audit, AuditEnd, AuditSubject, Operation } from '../core/audit.ts'
import type { Call, Caller, Interceptor } from '../core/call.ts'
import type { Decide, Decision } from '../core/decision.ts'
import type { Entry, Kind } from '../core/entry.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Result } from '../core/result.ts'
import type { RefuseCall } from './policy.ts'
import type { Note, Refusals, Who } from './refusals.ts'

/** What operations on entries are called in the record. */
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
  /** What is recorded; the usual operation on this kind of entry unless given. */
  readonly operation: Operation | undefined
  readonly refusals: Refusals
}

/**
 * Decides about a call once, records it before and after (F11), and refuses what policy denies. A response leaves only
 * when its record is as durable as `audit.sync` asks for. Denials beyond the limit of a principal are counted instead
 * of recorded one by one (B7).
 */
export const auditAndDecide = ({ log, decide, refuse, operation, refusals }: AuditOptions): Interceptor => {
  /** A decision that fails is no decision: nothing runs, and that is written down. */
  const decided = (call: Call): Decision => {
    try {
      return decide(call.caller, call.entry)
    } catch (thrown) {
      const subject = subjectOf(call, operation ?? operations[call.entry.kind], true)
      const failure = new ToolwayError('INTERNAL', 'Policy could not decide about this call, so it was not run.', {
        server: call.entry.server,
        auditReason: 'decision_failed',
        cause: thrown,
      })
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
    const ended = (how: Ending) =>
      log.end({ ...subject, ...how, ...note, ...attemptsOf(call), latency_ms: since(start) })
    try {
      const result = await (decision.allowed ? next(call) : refuse(call, decision))
      const waiting = ended({ ...outcomeOf(result, rule), ...result.listing })
      // Most reads have nothing to wait for, and every turn of the loop counts.
      if (waiting) await waiting
      return result
    } catch (thrown) {
      // A record that could not be written is told once, not once more about itself.
      if (!(thrown instanceof ToolwayError) || thrown.code !== 'AUDIT_UNAVAILABLE') await ended(endingOf(thrown))
      throw thrown
    }
  }
}

/** How each attempt ended, where there were several; the trail has them. */
function attemptsOf({ trail }: Call): Pick<AuditEnd, 'attempts'> | undefined {
  const { steps = [] } = trail ?? {}
  // Nearly all calls have one step or two.
  if (steps.length < 2) return undefined
  const attempts = steps.filter(({ name }) => name === 'attempt')
  return attempts.length < 2 ? undefined : { attempts: attempts.map(({ error }) => error ?? 'ok') }
}

const outcomeOf = ({ refusal, isError, findings }: Result, rule: string): Ending =>
  refusal ? endingOf(refusal) : { decision: 'ALLOW', rule, is_error: isError, ...(findings && { findings }) }

type Ending = Omit<AuditEnd, keyof AuditSubject | 'latency_ms'>

/** How a failure is written down. */
export function endingOf(thrown: unknown): Ending {
  if (thrown instanceof ServerError) return { decision: 'ERROR', reason: 'server_error', is_error: true }
  const { code, kind, details } = ToolwayError.from(thrown).truth
  const decision = kind.denial ? 'DENY' : code === 'TIMEOUT' ? 'TIMEOUT' : 'ERROR'
  const { rule, auditReason = code.toLowerCase() } = details
  return { decision, reason: auditReason, ...(rule !== undefined && { rule }), code, is_error: true }
}

const since = (start: number): number => Math.round((performance.now() - start) * 1000) / 1000

/** The operator's own credential is no flood's: each of its refusals is written down. */
const noteOf = ({ admin }: Caller, who: Who, refusals: Refusals): Note => (admin ? {} : refusals.admit(who))

/** Who a record is about. */
const whoOf = ({ agent, principal, authenticated, address }: Caller): Who => ({
  agent,
  principal,
  ...(!authenticated && { anonymous: true as const }),
  ...(address !== undefined && { address }),
})

/** Made in one piece and always of one shape: every call needs one, and pieces put together cost more than all in them. */
function subjectOf({ id, parent, caller, entry }: Call, operation: Operation, refused: boolean): AuditSubject {
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
    write: mayWrite(entry, operation),
    brief: refused ? true : undefined,
  }
}

/** What carries other calls changes nothing but through them, and they are written down themselves. */
const mayWrite = ({ traits }: Entry, operation: Operation): boolean =>
  !traits.readOnly && !traits.carries && operation !== 'complete' && operation !== 'subscribe'

/** Which of many resources a template stands for is part of what was asked. */
function argumentsOf({ input, entry }: Call): Readonly<Record<string, unknown>> {
  const { uri } = input
  return uri === undefined || uri === entry.name ? input.arguments.exact : { ...input.arguments.exact, uri }
}

/** What somebody asked of a view. */
type Asked = Pick<AuditSubject, 'operation' | 'kind' | 'server' | 'tool'>

/**
 * A view whose listings are written down, and so is asking in vain: what is not found never becomes a call, and would
 * leave no trace otherwise. Whoever asks in vain too often is told so and counted (B7).
 */
export function auditedView(view: View, caller: Caller, log: Audit, refusals: Refusals): View {
  const subject = (asked: Asked) => ({ call: randomUUID(), ...whoOf(caller), ...asked, write: false })

  const inVain = (asked: Asked, thrown: unknown, start: number) => {
    // A server that cannot be reached is not what somebody may not have.
    const note = ToolwayError.from(thrown).kind.retryable ? {} : noteOf(caller, whoOf(caller), refusals)
    // Spellings come from anybody and may be anything.
    return log.end({ ...subject(asked), brief: true, ...endingOf(thrown), ...note, latency_ms: since(start) })
  }

  const sought = <T>(kind: Kind, asked: { server?: string; tool: string }, search: Promise<T>): Promise<T> => {
    const start = performance.now()
    return search.catch(async (thrown) => {
      await inVain({ operation: operations[kind], kind, ...asked }, thrown, start)
      throw thrown
    })
  }

  const listed = (kind: Kind, cursor: string | undefined, start: number): Page => {
    try {
      return view.page(kind, cursor)
    } catch (thrown) {
      inVain({ operation: 'list', kind }, thrown, start)?.catch(ignored)
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
      // A list changes nothing: nobody waits for the record of it. About four characters to a token.
      log
        .end({ ...subject({ operation: 'list', kind }), ...shown, tokens: Math.ceil(page.items.length / 4) })
        ?.catch(ignored)
      return page
    },
    resolve: (kind, spelling, wait) => sought(kind, { tool: spelling }, view.resolve(kind, spelling, wait)),
    find: (kind, server, name, wait) => sought(kind, { server, tool: name }, view.find(kind, server, name, wait)),
  }
}

/** Whoever writes the records tells the log that it cannot. */
const ignored = () => {}
