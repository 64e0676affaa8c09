import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { Access } from '../../core/access.ts'
import { type Call, type Caller, type Input, quietPeer, type Trail, waitedMs } from '../../core/call.ts'
import { type CallFilter, type CallOrder, type CallPosition, mapChoices } from '../../core/call-query.ts'
import { invalidArguments, ServerError, ToolwayError } from '../../core/errors.ts'
import type { CapturedCall } from '../../core/history.ts'
import { Json } from '../../json/json.ts'
import { parseJson } from '../../json/parse-json.ts'
import { actingAs, ownAgents } from '../../serve/auth/identity.ts'
import { HttpError, rpcCodes } from '../../serve/errors.ts'
import { callPosition, comparePositions } from '../../telemetry/calls/call-records.ts'
import type { AuditQueries } from '../audit/audit.ts'
import type { AdminContext } from '../context.ts'
import type { CallChoicesView, CallDetail, CallPage, CallRange, CallsQuery, CallView, TryResult } from '../contract.ts'
import { adminRoute, type Route, userRoute } from '../router.ts'
import { tryResult } from '../tools/schema.ts'
import { invalidCursor } from '../tools/visibility.ts'
import * as schema from './schema.ts'

export type CallsService = ReturnType<typeof createCallsAdmin>

/**
 * Calls in memory and in the history. Non-admins see only the calls of their own agents, and nothing that was captured:
 * principals that share an agent would otherwise see each other's data.
 */
export const createCallsAdmin = (context: AdminContext, auditQueries: AuditQueries) => ({
  ...createCallViews(context, auditQueries),
  ...createCallRuns(context),
})

function createCallViews(context: AdminContext, auditQueries: AuditQueries) {
  const { calls, history, log } = context
  return {
    /** The latest calls that are in memory, newest first. */
    calls: (caller: Caller, { limit }: Pick<CallsQuery, 'limit'>): readonly CallView[] =>
      calls.list(visibleTo(caller, {}), limit),
    /** Calls in memory and in the history. */
    async pastCalls(caller: Caller, { limit, sort, cursor, ...query }: CallsQuery): Promise<CallPage> {
      const filter = visibleTo(caller, query)
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
      const filter = visibleTo(caller, query)
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
      if (!caller.admin) return { ...found, children, audit: noRecords, captured: null, rerun: null }
      const captured = await findCapture(context, id)
      // If its records cannot be read, the call is shown without them.
      const audit = auditQueries.recordsOf(id).catch((cause) => {
        log.warn({ err: cause }, "could not read a call's audit records")
        return noRecords
      })
      const rerun = await rerunOf(context, caller, captured)
      return { ...found, children, audit: await audit, captured: viewCapture(captured), rerun }
    },
  }
}

function createCallRuns(context: AdminContext) {
  const { access } = context
  return {
    /** Makes a captured call again, as an agent that the caller may act as. */
    async runAgain(caller: Caller, id: string, signal: AbortSignal): Promise<TryResult> {
      const captured = requireRepeatable(await findCapture(context, id))
      const acting = actingAs(access, caller, captured.agent)
      const { entry } = await access.view(acting).find(captured.kind, captured.server, captured.name)
      const args = Json.parse(captured.arguments.text) as Json<Record<string, unknown>>
      const input = { arguments: args, meta: {}, ...(captured.uri !== undefined && { uri: captured.uri }) }
      return perform(access, { caller: acting, entry, input, signal, peer: nonInteractive })
    },
    /** Calls the tool through the pipeline, as an agent that the caller may act as. */
    async tryTool(
      caller: Caller,
      name: string,
      given: Pick<Call, 'timeoutMs'> & { readonly arguments: Input['arguments']; readonly agent?: string | undefined },
      signal: AbortSignal,
    ): Promise<TryResult> {
      const acting = actingAs(access, caller, given.agent)
      const { entry } = await access.view(acting).resolve('tool', name)
      const input = { arguments: given.arguments, meta: {} }
      const limit = { timeoutMs: given.timeoutMs, timeoutKey: 'timeoutMs' }
      return perform(access, { caller: acting, entry, input, signal, peer: nonInteractive, ...limit })
    },
  }
}

const findCapture = async ({ captures, history, current, clock }: AdminContext, id: string) =>
  captures.find(id) ?? history?.captured(id, clock.now() - current().loaded.config.capture.keep)

async function rerunOf(
  { current }: AdminContext,
  caller: Caller,
  captured: CapturedCall | undefined,
): Promise<CallDetail['rerun']> {
  try {
    const { kind, server, name, agent } = requireRepeatable(captured)
    // Without the audited view: showing a call is not a lookup by a caller.
    const { catalog } = current()
    const { entry } = await catalog.view({ ...caller, agent }).find(kind, server, name, { timeoutMs: 0 })
    return { possible: true, reason: null, write: kind === 'tool' && !entry.traits.readOnly }
  } catch (thrown) {
    return { possible: false, reason: ToolwayError.from(thrown).message, write: true }
  }
}

const visibleTo = (caller: Caller, filter: CallFilter): CallFilter =>
  caller.admin ? filter : { ...filter, agents: [...ownAgents(caller)] }

const orderOf = (sort: CallsQuery['sort']): CallOrder => ({
  by: sort.replace('-', '') as CallOrder['by'],
  descending: sort.startsWith('-'),
})

const writeCursor = (position: CallPosition | undefined): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

const cursorPosition = z.tuple([z.union([z.string(), z.number()]), z.string()])

function readCursor(cursor: string): CallPosition {
  const { data } = cursorPosition.safeParse(parseJson(Buffer.from(cursor, 'base64url').toString()))
  if (data) return data
  throw invalidCursor()
}

const noRecords: CallDetail['audit'] = { begin: null, end: null }

/** Throws if a captured call cannot be made again. Only the caller's own bytes are ever sent again. */
function requireRepeatable(captured: CapturedCall | undefined): CapturedCall {
  if (!captured) {
    throw invalidArguments(
      'The arguments of this call were not captured, or are no longer kept: set `capture: true` on its server or agent.',
    )
  }
  const { truncated, redacted } = captured.arguments
  if (redacted) throw invalidArguments('The arguments contained secrets, which were redacted.')
  if (!truncated) return captured
  throw invalidArguments('The arguments were longer than what is captured of a call (`capture.maxBytesPerCall`).')
}

function viewCapture(captured: CapturedCall | undefined): CallDetail['captured'] {
  if (!captured) return null
  const { arguments: args, result = null, error = null, progress, droppedProgress } = captured
  return { arguments: args, result, error, progress, droppedProgress }
}

/** A short id with 62 random bits. */
export const shortCallId = (): string => randomUUID().slice(19)

/** Makes a call for the dashboard. Policy, limits and audit apply as they do to any other call. */
export async function perform(access: Access, call: Omit<Call, 'id'>, id = shortCallId()): Promise<TryResult> {
  const start = performance.now()
  const trail: Trail = { steps: [] }
  const outcome = (result: TryResult['result'], error: TryResult['error']): TryResult => ({
    call: id,
    ms: Math.round((performance.now() - start - waitedMs(trail)) * 100) / 100,
    result,
    error,
  })
  try {
    const { body } = await access.handle({ id, trail, ...call })
    return outcome(body.exact, null)
  } catch (thrown) {
    return outcome(null, shownError(thrown))
  }
}

/** The error to show in the call's result. Unexpected errors are thrown instead, so that they are logged. */
function shownError(thrown: unknown): TryResult['error'] {
  if (thrown instanceof ServerError) {
    const { code, message, data } = thrown.error.value
    return { code: `rpc ${code}`, message, data }
  }
  const error = ToolwayError.from(thrown)
  if (error.code === 'INTERNAL') throw thrown
  const { code, ...details } = error.data
  return { code, message: error.message, ...details }
}

/** The requests from servers that a person at the dashboard can answer. */
export const askable = { elicitation: { form: {}, url: {} }, sampling: {} }

/**
 * A peer for calls without a stream: it cannot answer requests from servers. Calls that need approval wait for people
 * elsewhere.
 */
export const nonInteractive = quietPeer(() =>
  Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'The dashboard cannot answer requests from a tool.')),
)

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
