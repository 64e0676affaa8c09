import { randomUUID } from 'node:crypto'
import type { Caller, Peer } from '../../core/call.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { CallDetail, CallView, TryResult } from '../../serve/admin/contract.ts'
import type { AdminService, TryToolInput } from '../../serve/admin/service.ts'
import { resolveAgent } from './agents.ts'
import type { AuditQueries } from './audit-queries.ts'
import type { AdminContext } from './context.ts'

type CallsAdmin = Pick<AdminService, 'calls' | 'pastCalls' | 'call'>

/** Recent calls. Non-admins see only their own agent's calls. */
export function createCallsAdmin({ calls, history, log }: AdminContext, auditQueries: AuditQueries): CallsAdmin {
  return {
    calls(caller, { limit, ...filter }) {
      if (caller.admin) return calls.list(filter, limit)
      if (filter.agent !== undefined && filter.agent !== caller.agent) return []
      return calls.list({ ...filter, agent: caller.agent }, limit)
    },
    async pastCalls(caller, { limit, from = 0, to = Number.MAX_SAFE_INTEGER, ...filter }) {
      if (!caller.admin && filter.agent !== undefined && filter.agent !== caller.agent) return []
      const visible = caller.admin ? filter : { ...filter, agent: caller.agent }
      const inMemory = calls.list(visible, Number.MAX_SAFE_INTEGER).filter(({ at }) => at >= from && at < to)
      const past = (await history?.past.calls({ ...visible, from, to }, limit)) ?? []
      // Memory has the running calls, and what the history has no room for.
      const known = new Set(inMemory.map(({ id }) => id))
      return [...inMemory, ...past.filter(({ id }) => !known.has(id))].sort((a, b) => b.at - a.at).slice(0, limit)
    },
    async call(caller, id) {
      const found = calls.find(id) ?? (await history?.past.call(id))
      const maySee = ({ agent }: CallView) => caller.admin || agent === caller.agent
      if (!found || !maySee(found)) return undefined
      const audit = caller.admin ? await recordsOf(id) : none
      return { ...found, children: found.children.filter(maySee), audit }
    },
  }

  /** Reads a call's audit records. If that fails, the call is shown without them. */
  function recordsOf(id: string): Promise<CallDetail['audit']> {
    return auditQueries.recordsOf(id).catch((cause) => {
      log.warn({ cause }, "could not read a call's audit records")
      return none
    })
  }
}

const none: CallDetail['audit'] = { begin: null, end: null }

/**
 * Calls a tool from the dashboard. Policy, limits and audit apply as they do to any other call. Calls that need
 * approval wait for it like those of any other client.
 */
export async function tryTool(
  { access }: AdminContext,
  caller: Caller,
  name: string,
  { arguments: args, agent }: TryToolInput,
  signal: AbortSignal,
): Promise<TryResult> {
  const acting = { ...caller, agent: resolveAgent(access, caller, agent) }
  const { entry } = await access.view(acting).resolve('tool', name)
  const id = randomUUID().slice(19)
  const input = { arguments: args, meta: {} }
  const start = performance.now()
  const outcome = (result: TryResult['result'], error: TryResult['error']): TryResult => ({
    call: id,
    ms: Math.round((performance.now() - start) * 100) / 100,
    result,
    error,
  })
  try {
    const { body } = await access.handle({ id, caller: acting, entry, input, signal, peer: nonInteractive })
    return outcome(body.value, null)
  } catch (thrown) {
    return outcome(null, errorOf(thrown))
  }
}

/** The error to show in the call's result. Unexpected errors are thrown instead, so that they are logged. */
function errorOf(thrown: unknown): TryResult['error'] {
  if (thrown instanceof ServerError) {
    const { code, message } = thrown.error.value
    return { code: `rpc ${code}`, message }
  }
  const error = ToolwayError.from(thrown)
  if (error.code === 'INTERNAL') throw thrown
  return { code: error.code, message: error.message, rule: error.details.rule }
}

const nonInteractive: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () => Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'The dashboard cannot answer requests from a tool.')),
}
