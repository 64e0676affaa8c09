import * as z from 'zod'
import type { Access, MissingServer, Served, View } from '../../core/access.ts'
import { toolsForModels } from '../../core/apps.ts'
import type { Call, Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Decide } from '../../core/decision.ts'
import { type Entry, seenName } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { type Listing, type Result, resultOf } from '../../core/result.ts'
import { shortFirstLine } from '../../core/servers-sentence.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import type { ResultStore } from '../../core/stores.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { waitFor } from './nested-call.ts'

/** Everything that meta-tools can access. They see and run only what their caller may see and run. */
export interface MetaToolsOptions {
  readonly access: Access
  readonly clock: Clock
  /** Undefined if results are never cut. */
  readonly results?: ResultReader | undefined
  status(caller: Caller): GatewayStatus | StatusRefusal
  /** The caller acting as the agent. Throws INVALID_AGENT_ID if the caller's credential does not allow that agent. */
  asAgent(call: Call, agentId: string | undefined): Caller
  /** Called with what a search found. */
  readonly searched?: ((caller: Caller, query: string, found: readonly Served[]) => void) | undefined
}

/** The whole results of calls, and what bounds reading them. */
export interface ResultReader {
  readonly store: ResultStore
  readonly keepMs: number
  readonly decide: Decide
  /** The limit for results of an entry, in tokens; 0 if there is none. */
  maxTokens(caller: Caller, entry: Entry): number
  /** A test for texts that takes linear time; undefined if the pattern is not supported. */
  compilePattern(source: string): Promise<((text: string) => boolean) | undefined>
}

export const agentId = z.string().optional().describe('The agent to act as, if you may act as more than one.')

export interface GatewayStatus {
  readonly version: string
  readonly reload_status: {
    readonly attempts: number
    readonly successes: number
    readonly last_error: string | null
    readonly last_error_at: string | null
    readonly last_success_at: string | null
    readonly warnings: readonly string[]
  }
  readonly policy_state: {
    /** Agents that have rules. If empty, there is only one agent, which may use everything. */
    readonly agents: readonly string[]
    readonly default_agent: string | null
    readonly deny_on_missing_agent: boolean
  }
  readonly config_paths: readonly string[]
}

/** The rule that hides the gateway's status from a caller. */
export interface StatusRefusal {
  readonly refusedBy: string
}

/** A list as a result, with the numbers for the audit log (F11). `tokens` assumes four characters per token. */
export function listResult(answer: object, listing: Omit<Listing, 'tokens'>): Result {
  const text = JSON.stringify(answer)
  const body = { content: [{ type: 'text', text }], structuredContent: answer }
  return { ...resultOf(body), listing: { ...listing, tokens: Math.ceil(text.length / 4) } }
}

/** The caller's view, once the server (by default, every server) has started. Throws if the caller may not use it. */
export async function startedView(
  { access, asAgent }: MetaToolsOptions,
  call: Call,
  { agent_id, server }: { readonly agent_id?: string; readonly server?: string },
): Promise<View> {
  const view = access.view(asAgent(call, agent_id))
  await (server === undefined ? view.ready() : view.started(server, waitFor(call)))
  // Throw the refusal: an empty list would not explain why there are no tools.
  const refusal = server === undefined ? undefined : view.refusal(server, 'tool')
  if (refusal) throw refusal
  requestedServers(view, server)
  return view
}

export const briefly = ({ entry }: Served) => ({
  server: entry.server,
  name: seenName(entry),
  description: shortFirstLine(entry.definition.description),
  // Says which tools call_read_tool accepts. Most do not, so leave it out for them.
  ...(entry.traits.readOnly && { readOnly: true }),
})

/** The shortest form in a list or search: one string for each tool, which `server.tool` of every call accepts. */
export const nameOnly = ({ entry }: Served): string => `${entry.server}.${seenName(entry)}`

/** The tools that a caller may use, without the meta-tools and those for pages of apps. If a server is given, only that server's tools. */
export function usableTools(view: View, server?: string): readonly Served[] {
  const names = new Set(server === undefined ? view.servers().map(({ name }) => name) : [server])
  return toolsForModels(view.list('tool')).filter(({ entry }) => names.has(entry.server))
}

export function requestedServers(view: View, server?: string): readonly ServerSummary[] {
  const servers = view.servers()
  if (server === undefined) return servers
  const found = servers.filter(({ name }) => name === server)
  if (found.length === 0) throw serverNotFound(view, server)
  return found
}

/** The servers whose tools are missing from a list. Includes a disabled server only if the caller named it. */
export function missingFrom(view: View, server?: string): readonly MissingServer[] {
  if (server === undefined) return view.missing()
  const missing = view.missing().filter((one) => one.server === server)
  if (missing.length > 0) return missing
  const disabled = view.servers().filter(({ name, status }) => name === server && status.health === 'disabled')
  return disabled.map(({ name, status: { health, reason } }) => ({ server: name, status: health, reason }))
}

export function serverNotFound(view: View, server: string): ToolwayError {
  const names = view.servers().map(({ name }) => name)
  const hint = didYouMean(server, names, '; call list_servers to see the servers you may use.')
  const error = new ToolwayError('SERVER_NOT_FOUND', `There is no server "${server.slice(0, 100)}"${hint}`)
  return error.concealing(view.concealed?.(server))
}
