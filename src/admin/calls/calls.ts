import * as z from 'zod'
import type { Caller } from '../../core/call.ts'
import { type CallFilter, type CallOrder, type CallPosition, mapChoices } from '../../core/call-query.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import type { CapturedCall } from '../../core/history.ts'
import { Json } from '../../json/json.ts'
import { parseJson } from '../../json/parse-json.ts'
import { ownAgents } from '../../serve/auth/identity.ts'
import { HttpError, rpcCodes } from '../../serve/errors.ts'
import { callPosition, comparePositions } from '../../telemetry/calls/call-records.ts'
import type { AuditQueries } from '../audit/audit.ts'
import type { AdminContext } from '../context.ts'
import type { CallChoicesView, CallDetail, CallPage, CallRange, CallsQuery, CallView, TryResult } from '../contract.ts'
import { resolveAgent } from '../policy/agents.ts'
import { adminRoute, type Route, userRoute } from '../router.ts'
import { tryResult } from '../tools/schema.ts'
import { nonInteractive, perform } from './perform.ts'
import * as schema from './schema.ts'

export type CallsService = ReturnType<typeof createCallsAdmin>

export interface TryToolInput {
  /** The arguments with their original bytes. */
  readonly arguments: Json<Record<string, unknown>>
  readonly agent?: string | undefined
  readonly timeoutMs?: number | undefined
}

/**
 * Calls in memory and in the history. Non-admins see only the calls of their own agents, and nothing that was captured:
 * principals that share an agent would otherwise see each other's data.
 */
export function createCallsAdmin(context: AdminContext, auditQueries: AuditQueries) {
  const { calls, captures, current, history, access, clock, log } = context
  const capturedOf = async (id: string) =>
    captures.find(id) ?? history?.captured(id, clock.now() - current().loaded.config.capture.keep)
  return {
    /** The latest calls that are in memory, newest first. */
    calls: (caller: Caller, { limit }: Pick<CallsQuery, 'limit'>): readonly CallView[] =>
      calls.list(visible(caller, {}), limit),
    /** Calls in memory and in the history. */
    async pastCalls(caller: Caller, { limit, sort, cursor, ...query }: CallsQuery): Promise<CallPage> {
      const filter = visible(caller, query)
      const order = orderOf(sort)
      const after = cursor === undefined ? undefined : readCursor(cursor)
      const follows = (call: CallView) =>
        after === undefined || comparePositions(callPosition(call, order), after, order) > 0
      // Memory has the running calls, and those that the history has no room for.
      const own = calls.list(filter, Number.MAX_SAFE_INTEGER)
      const counted = own.map(({ id }) => id)
      const past = await history?.past.calls({ ...filter, order, after, limit: limit + 1, counted })
      const known = new Map([...own.filter(follows), ...(past?.calls ?? [])].map((call) => [call.id, call]))
      const positions = [...known.values()].map((call) => ({ call, position: callPosition(call, order) }))
      const found = positions.sort((a, b) => comparePositions(a.position, b.position, order))
      const page = found.slice(0, limit)
      return {
        calls: page.map(({ call }) => call),
        total: own.length + (past?.total ?? 0),
        nextCursor: found.length > limit ? writeCursor(page.at(-1)?.position) : null,
      }
    },
    async callChoices(caller: Caller, query: CallRange): Promise<CallChoicesView> {
      const filter = visible(caller, query)
      const own = calls.list(filter, Number.MAX_SAFE_INTEGER)
      const past = await history?.past.choices(filter)
      return mapChoices((name) => {
        const values = new Set([...own.map((call) => call[name] ?? ''), ...(past?.[name] ?? [])])
        return [...values].filter((value) => value !== '').sort()
      })
    },
    async call(caller: Caller, id: string): Promise<CallDetail | undefined> {
      const found = calls.find(id) ?? (await history?.past.call(id))
      const own = ownAgents(caller)
      const maySee = ({ agent }: CallView) => caller.admin || own.has(agent)
      if (!found || !maySee(found)) return undefined
      const children = found.children.filter(maySee)
      if (!caller.admin) return { ...found, children, audit: none, captured: null, rerun: null }
      const captured = await capturedOf(id)
      const [audit, rerun] = await Promise.all([recordsOf(id), rerunOf(caller, captured)])
      return { ...found, children, audit, captured: viewOf(captured), rerun }
    },
    /** Makes a captured call again, as an agent that the caller may act as. */
    async runAgain(caller: Caller, id: string, signal: AbortSignal): Promise<TryResult> {
      const captured = await capturedOf(id)
      const reason = refusalOf(captured)
      if (captured === undefined || reason !== undefined) throw new ToolwayError('INVALID_ARGUMENTS', reason as string)
      const acting = { ...caller, agent: resolveAgent(access, caller, captured.agent) }
      const { entry } = await access.view(acting).find(captured.kind, captured.server, captured.name)
      const args = Json.parse(captured.arguments.text) as Json<Record<string, unknown>>
      const input = { arguments: args, meta: {}, ...(captured.uri !== undefined && { uri: captured.uri }) }
      return perform(access, { caller: acting, entry, input, signal, peer: nonInteractive })
    },
    /** Calls the tool through the pipeline, as an agent that the caller may act as. */
    async tryTool(
      caller: Caller,
      name: string,
      { arguments: args, agent, timeoutMs }: TryToolInput,
      signal: AbortSignal,
    ): Promise<TryResult> {
      const acting = { ...caller, agent: resolveAgent(access, caller, agent) }
      const { entry } = await access.view(acting).resolve('tool', name)
      const input = { arguments: args, meta: {} }
      const limit = { timeoutMs, timeoutKey: 'timeoutMs' }
      return perform(access, { caller: acting, entry, input, signal, peer: nonInteractive, ...limit })
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

/** Restricts a filter to the calls that a caller may see. */
const visible = (caller: Caller, filter: CallFilter): CallFilter =>
  caller.admin ? filter : { ...filter, agents: [...ownAgents(caller)] }

const orderOf = (sort: CallsQuery['sort']): CallOrder => ({
  by: sort.replace('-', '') as CallOrder['by'],
  descending: sort.startsWith('-'),
})

const writeCursor = (position: CallPosition | undefined): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

const position = z.tuple([z.union([z.string(), z.number()]), z.string()])

function readCursor(cursor: string): CallPosition {
  const { data } = position.safeParse(parseJson(Buffer.from(cursor, 'base64url').toString()))
  if (data) return data
  throw invalidArguments('Invalid cursor: use `nextCursor` from a previous page, or start without one.')
}

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

export const callsRoutes = (admin: CallsService): readonly Route[] => [
  userRoute('GET', 'calls', 'Calls in memory and in the history', {
    query: schema.callsQuery,
    answer: schema.callPage,
    run: ({ caller, query }) => admin.pastCalls(caller, query),
  }),
  userRoute('GET', 'calls/choices', 'The agents, servers, tools, operations and codes of calls, to filter by', {
    query: schema.callRange,
    answer: schema.callChoices,
    run: ({ caller, query }) => admin.callChoices(caller, query),
  }),
  userRoute('GET', 'calls/{id}', 'One call: its timeline, inner calls, audit records and captured content', {
    answer: schema.callDetail,
    async run({ caller, target }) {
      const call = await admin.call(caller, target)
      if (call) return call
      const sentence =
        'Call not found: calls are kept for a limited time (`history.keep`). The audit log has all of them.'
      throw new HttpError(404, rpcCodes.request, sentence)
    },
  }),
  adminRoute('POST', 'calls/{id}/run', 'Makes a call again, with its captured arguments', {
    answer: tryResult,
    run: ({ caller, target, signal }) => admin.runAgain(caller, target, signal),
  }),
]
