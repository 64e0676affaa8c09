import type { Caller } from '../../core/call.ts'
import type { CapturedCall } from '../../core/captures.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { compileCapture } from '../../policy/agents.ts'
import type { CallDetail, CallView } from '../../serve/admin/contract.ts'
import type { AdminService } from '../../serve/admin/service.ts'
import { ownAgents } from '../../serve/auth/identity.ts'
import { resolveAgent } from './agents.ts'
import type { AuditQueries } from './audit-queries.ts'
import type { AdminContext } from './context.ts'
import { nonInteractive, perform } from './perform.ts'

type CallsAdmin = Pick<AdminService, 'calls' | 'pastCalls' | 'call' | 'runAgain' | 'tryTool'>

/**
 * Recent calls of this process. Non-admins see only the calls of their own agents, and nothing that was captured: principals
 * that share an agent would otherwise see each other's data.
 */
export function createCallsAdmin(context: AdminContext, auditQueries: AuditQueries): CallsAdmin {
  const { calls, captures, current, history, access, log } = context
  /** Whether such calls are captured: other processes are not asked for the content of calls that have none. */
  const isCaptured = ({ agent, server }: CallView) =>
    compileCapture(current().loaded.config)?.({ caller: { agent }, entry: { server } }) ?? false
  const inMemory: CallsAdmin['calls'] = (caller, { limit, ...filter }) =>
    newest(
      visibleParts(caller, filter).map((part) => calls.list(part, limit)),
      limit,
    )
  return {
    calls: inMemory,
    async pastCalls(caller, query) {
      // Memory has the latest calls, also those of earlier processes, but not those of processes that run beside this one.
      if (context.worker === undefined && query.from === undefined && query.to === undefined) {
        const latest = inMemory(caller, query)
        if (!history || latest.length >= query.limit) return latest
      }
      const { limit, from = 0, to = Number.MAX_SAFE_INTEGER, ...filter } = query
      const parts = visibleParts(caller, filter).map((part) => ({ ...part, from, to }))
      const own = parts.flatMap((part) => calls.list(part, Number.MAX_SAFE_INTEGER))
      const past = await Promise.all(parts.map(async (part) => (await history?.past.calls(part, limit)) ?? []))
      // Memory has the running calls, and what the history has no room for.
      const known = new Set(own.map(({ id }) => id))
      return newest([own, past.flat().filter(({ id }) => !known.has(id))], limit)
    },
    async call(caller, id) {
      const found = calls.find(id) ?? (await history?.past.call(id))
      const own = ownAgents(caller)
      const maySee = ({ agent }: CallView) => caller.admin || own.has(agent)
      if (!found || !maySee(found)) return undefined
      const children = found.children.filter(maySee)
      if (!caller.admin) return { ...found, children, audit: none, captured: null, rerun: null }
      const captured = await captures.find(id, isCaptured(found))
      const [audit, rerun] = await Promise.all([recordsOf(id), rerunOf(caller, captured)])
      return { ...found, children, audit, captured: viewOf(captured), rerun }
    },
    async runAgain(caller, id, signal) {
      const captured = await captures.find(id)
      const reason = refusalOf(captured)
      if (captured === undefined || reason !== undefined) throw new ToolwayError('INVALID_ARGUMENTS', reason as string)
      const acting = { ...caller, agent: resolveAgent(access, caller, captured.agent) }
      const { entry } = await access.view(acting).find(captured.kind, captured.server, captured.name)
      const args = Json.parse(captured.arguments.text) as Json<Record<string, unknown>>
      const input = { arguments: args, meta: {}, ...(captured.uri !== undefined && { uri: captured.uri }) }
      return perform(access, { caller: acting, entry, input, signal, peer: nonInteractive })
    },
    async tryTool(caller, name, { arguments: args, agent }, signal) {
      const acting = { ...caller, agent: resolveAgent(access, caller, agent) }
      const { entry } = await access.view(acting).resolve('tool', name)
      const input = { arguments: args, meta: {} }
      return perform(access, { caller: acting, entry, input, signal, peer: nonInteractive })
    },
  }

  async function rerunOf(caller: Caller, captured: CapturedCall | undefined): Promise<CallDetail['rerun']> {
    const reason = refusalOf(captured)
    if (captured === undefined || reason !== undefined) return { possible: false, reason: reason ?? null, write: true }
    // Without the audited view: showing a call is not a lookup by a caller.
    const { catalog } = current()
    const served = await catalog
      .view({ ...caller, agent: captured.agent })
      .find(captured.kind, captured.server, captured.name, { timeoutMs: 0 })
      .catch((thrown: unknown) => ToolwayError.from(thrown))
    if (served instanceof ToolwayError) return { possible: false, reason: served.message, write: true }
    return { possible: true, reason: null, write: captured.kind === 'tool' && !served.entry.traits.readOnly }
  }

  /** Reads a call's audit records. If that fails, the call is shown without them. */
  function recordsOf(id: string): Promise<CallDetail['audit']> {
    return auditQueries.recordsOf(id).catch((cause) => {
      log.warn({ err: cause }, "could not read a call's audit records")
      return none
    })
  }
}

/** Filters that together select what a caller may see of the calls that match a filter: one for each agent. */
const visibleParts = <Filter extends { readonly agent?: string | undefined }>(
  caller: Caller,
  filter: Filter,
): readonly Filter[] => {
  if (caller.admin) return [filter]
  const agents = [...ownAgents(caller)].filter((agent) => (filter.agent ?? agent) === agent)
  return agents.map((agent) => ({ ...filter, agent }))
}

const newest = (lists: readonly (readonly CallView[])[], limit: number): readonly CallView[] =>
  lists
    .flat()
    .sort((a, b) => b.at - a.at)
    .slice(0, limit)

const none: CallDetail['audit'] = { begin: null, end: null }

/** Why a call cannot be made again; undefined if it can. Only the caller's own bytes are ever sent again. */
function refusalOf(captured: CapturedCall | undefined): string | undefined {
  if (captured === undefined) {
    return 'The arguments of this call were not captured, or are no longer kept: set `capture: true` on its server or agent.'
  }
  const { truncated, redacted } = captured.arguments
  if (redacted) return 'The arguments contained secrets, which were redacted.'
  if (truncated) return 'The arguments were longer than what is captured of a call (`capture.maxBytesPerCall`).'
  return undefined
}

function viewOf(captured: CapturedCall | undefined): CallDetail['captured'] {
  if (!captured) return null
  const { arguments: args, result = null, error = null, progress, droppedProgress } = captured
  return { arguments: args, result, error, progress, droppedProgress }
}
