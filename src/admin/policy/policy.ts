import { EventEmitter, on } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'yaml'
import * as z from 'zod'
import { formSchema } from '../../config/editor-schema.ts'
import type { Path } from '../../config/tree.ts'
import type { Served } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Entry } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { tokenAccount } from '../../core/tokens.ts'
import { dayMs } from '../../lib/duration.ts'
import { asRecord } from '../../lib/is-record.ts'
import { defaultAgent, lineage } from '../../policy/agents.ts'
import { Policy } from '../../policy/decide.ts'
import type { PolicyChange } from '../../policy/replay.ts'
import type { ReplayProgress } from '../../runtime/policy-replay.ts'
import { actingAs } from '../../serve/auth/identity.ts'
import type { AuditQueries } from '../audit/audit.ts'
import { toolsQuery, whyQuery } from '../calls/schema.ts'
import type { ConfigEdits } from '../config/config-edit.ts'
import { configEdit } from '../config/schema.ts'
import type { AdminContext } from '../context.ts'
import type {
  AgentView,
  ConfigEdit,
  Matrix,
  PolicyPart,
  PolicyPreview,
  PolicySettings,
  ReplayStreamEvent,
  ToolsQuery,
  WhyParams,
  WhyView,
} from '../contract.ts'
import { adminRoute, type Route, responseSent, userRoute } from '../router.ts'
import * as catalog from '../tools/schema.ts'
import type { ToolsService } from '../tools/tools.ts'
import { agentNames, asAgent, selectTools, withoutMetaTools } from '../tools/visibility.ts'
import * as schema from './schema.ts'

export type PolicyService = ReturnType<typeof createPolicyAdmin>

/** Replays at a time in one process. They share the thread that searches the audit log. */
const maxReplays = 2
/** More records take longer than an operator waits: about ten seconds for a million. */
const maxReplayRecords = 5_000_000
const maxGroups = 200
const maxRows = 500
/** How long permissions are compared before other work gets its turn. */
const comparisonSliceMs = 10

/** Shows the effect of a proposed policy, on the permissions of agents and on recorded calls. */
export function createPolicyAdmin(
  context: AdminContext,
  edits: Pick<ConfigEdits, 'loadedWith' | 'content' | 'file'>,
  auditQueries: Pick<AuditQueries, 'replay'>,
) {
  const { current, clock } = context
  let replays = 0

  async function* replayPolicy(edit: ConfigEdit, days: number, signal: AbortSignal): AsyncGenerator<ReplayStreamEvent> {
    if (replays >= maxReplays) throw new ToolwayError('OVERLOADED', 'Other replays are running: try again in a moment.')
    replays++
    try {
      const { agents, policy, defaults, mcpServers } = (await edits.loadedWith(edit)).config
      const serversProposed = !isDeepStrictEqual(mcpServers, current().loaded.config.mcpServers)
      const since = clock.now() - days * dayMs
      const events = new EventEmitter<{ progress: [ReplayProgress]; end: [] }>()
      const result = auditQueries
        .replay(
          { config: { agents, policy, defaults, mcpServers }, serversProposed },
          {
            ...{ since, maxRecords: maxReplayRecords, signal },
            progress: (done) => events.emit('progress', done),
          },
        )
        .finally(() => events.emit('end'))
      // A failure is thrown below.
      result.catch(() => {})
      for await (const [{ records }] of on(events, 'progress', { close: ['end'] })) yield { kind: 'progress', records }
      const { calls, complete, denied, allowed, gone } = await result
      const groups = { denied: groupOf(denied), allowed: groupOf(allowed), gone: groupOf(gone) }
      yield { kind: 'end', replay: { since, calls, complete, ...groups } }
    } finally {
      replays--
    }
  }

  return {
    agents: () => agentViews(context),
    matrix: (query: ToolsQuery) => matrixOf(context, query),
    why: (caller: Caller, params: WhyParams) => whyFor(context, caller, params),
    async policySettings(): Promise<PolicySettings> {
      const { values, hashAt } = await edits.content()
      const { path: file, editable } = await edits.file()
      return { file, editable, parts: policyParts(values, hashAt), schemas: formSchemas() }
    },
    async previewPolicy(edit: ConfigEdit): Promise<PolicyPreview> {
      const { config } = await edits.loadedWith(edit)
      const generation = current()
      const { pins, loaded } = generation
      const quarantined = config.policy.pins === 'quarantine' ? pins.denialOf : undefined
      const policy = new Policy({ config, quarantined })
      const tools = withoutMetaTools(generation.catalog.everything('tool'))
      return comparePolicies(generation.policy, policy, isDeepStrictEqual(config, loaded.config) ? [] : tools)
    },
    replayPolicy,
  }
}

function agentViews({ current, stats }: AdminContext): readonly AgentView[] {
  const generation = current()
  const { policy, catalog, concurrencyOf, loaded } = generation
  const { agents, defaults, limits } = loaded.config
  const fallback = defaults.agent ?? (defaults.denyOnMissingAgent ? undefined : defaultAgent)
  return agentNames(generation).map((name) => {
    const family = lineage(name, policy.agents)
    const view = catalog.view(asAgent(name))
    const perMinute = family.map((one) => agents[one]?.perMinute).find((limit) => limit !== undefined)
    return {
      name,
      inherits: family[1] ?? null,
      expose: policy.exposureOf(name),
      isDefault: policy.agents.size === 0 || name === fallback,
      tools: withoutMetaTools(view.list('tool')).length,
      tokens: tokenAccount(view),
      perMinute: perMinute ?? limits.perMinute ?? null,
      concurrency: concurrencyOf.agent(name) ?? null,
      limitsPer: limits.per,
      calls: stats.of('agent', name),
    }
  })
}

function matrixOf({ current }: AdminContext, query: ToolsQuery): Matrix {
  const generation = current()
  const agents = agentNames(generation)
  const callers = agents.map(asAgent)
  const { tools, ...page } = selectTools(withoutMetaTools(generation.catalog.everything('tool')), query)
  const rows = tools.map(({ entry }) => ({
    server: entry.server,
    tool: entry.name,
    allowed: callers.map((caller) => generation.policy.decide(caller, entry).allowed),
  }))
  return { agents, rows, ...page }
}

/** Explains a policy decision. Non-admins may ask only about agents that they may act as. */
async function whyFor({ access, why }: AdminContext, caller: Caller, params: WhyParams): Promise<WhyView> {
  const acting = caller.admin
    ? { ...caller, agent: params.agent ?? caller.agent }
    : actingAs(access, caller, params.agent)
  // Non-admins find a tool as for a call: failures are counted and audited, and hidden denials stay hidden.
  const lookUp = () => access.view(acting).resolve('tool', params.tool, { operation: 'find' })
  const meant = caller.admin ? params.tool : (await lookUp()).name
  const authenticated = caller.admin ? params.anonymous === undefined : caller.authenticated
  const { server, tool, served, decision, considered, ...found } = await why(acting.agent, meant, { authenticated })
  const sentence = decision.allowed ? `${found.agent} may use ${server}.${tool}: ${decision.rule}.` : decision.reason
  return {
    agent: found.agent,
    server,
    tool,
    ...(served !== undefined && { served }),
    allowed: decision.allowed,
    rule: decision.rule,
    sentence,
    decision: { ...decision },
    considered: considered.map((one) => ({ ...one, text: `${one.step}: ${one.note} (${one.outcome})` })),
  }
}

const groupOf = (changes: readonly PolicyChange[]) => ({
  calls: changes.reduce((sum, { calls }) => sum + calls, 0),
  changes: changes.slice(0, maxGroups).map(({ agent, server, tool, calls, last, before, after, examples }) => ({
    ...{ agent, server, tool, calls, last: Date.parse(last), before: before ?? null, after },
    examples: [...examples],
  })),
  omitted: Math.max(0, changes.length - maxGroups),
})

async function comparePolicies(before: Policy, after: Policy, tools: readonly Served[]): Promise<PolicyPreview> {
  const [old, next] = [new Set(agentNames({ policy: before })), new Set(agentNames({ policy: after }))]
  const agents = [...old.union(next)]
  const callers = agents.map(asAgent)
  const cells = (policy: Policy, known: ReadonlySet<string>, entry: Entry) =>
    callers.map((caller) => (known.has(caller.agent) ? policy.decide(caller, entry).allowed : null))
  const touched = new Set<number>()
  const rows: PolicyPreview['rows'][number][] = []
  let [changed, omitted] = [0, 0]
  let started = performance.now()
  for (const { entry } of tools) {
    const { server, name: tool } = entry
    const row = { server, tool, before: cells(before, old, entry), after: cells(after, next, entry) }
    const differing = [...agents.keys()].filter((index) => row.before[index] !== row.after[index])
    for (const index of differing) touched.add(index)
    changed += differing.length
    if (differing.length > 0 && rows.length < maxRows) rows.push(row)
    else if (differing.length > 0) omitted++
    if (performance.now() - started < comparisonSliceMs) continue
    await setImmediate()
    started = performance.now()
  }
  // Only the agents for which something changes.
  const only = <T>(cells: readonly T[]) => cells.filter((_, index) => touched.has(index))
  return {
    agents: only(agents),
    rows: rows.map((row) => ({ ...row, before: only(row.before), after: only(row.after) })),
    ...{ changed, total: agents.length * tools.length, omitted },
  }
}

/** The parts of the policy, whether or not the file contains them. */
function policyParts(content: Readonly<Record<string, unknown>>, hashAt: (path: Path) => string): PolicyPart[] {
  const part = (kind: PolicyPart['kind'], title: string, path: string[], value: unknown): PolicyPart => ({
    ...{ kind, title, path, value: value ?? null },
    yaml: value === undefined || value === null ? '' : stringify(value, { lineWidth: 0 }),
    hash: hashAt(path),
  })
  const agents = Object.entries(asRecord(content.agents))
  const servers = Object.entries(asRecord(content.mcpServers))
  return [
    ...agents.map(([name, agent]) => part('agent', `Agent ${name}`, ['agents', name], agent)),
    part('rules', 'Rules for all agents', ['policy'], content.policy),
    part('limits', 'Limits', ['limits'], content.limits),
    part('defaults', 'Defaults', ['defaults'], content.defaults),
    ...servers.map(([name, server]) =>
      part('guards', `Guards of ${name}`, ['mcpServers', name, 'guards'], asRecord(server).guards),
    ),
  ]
}

function formSchemas(): Record<PolicyPart['kind'], Record<string, unknown>> {
  const { agents = {}, policy = {}, limits = {}, defaults = {}, mcpServers = {} } = formSchema()
  const server = asRecord(asRecord(mcpServers.additionalProperties).properties)
  return {
    agent: { ...asRecord(agents.additionalProperties) },
    rules: policy,
    limits,
    defaults,
    guards: { ...asRecord(server.guards) },
  }
}

export const policyRoutes = (admin: PolicyService & Pick<ToolsService, 'agentTools'>): readonly Route[] => [
  adminRoute('GET', 'agents', 'The agents', {
    answer: z.array(catalog.agentView),
    run: () => admin.agents(),
  }),
  adminRoute('GET', 'agents/matrix', 'Which agent may use which tool', {
    query: toolsQuery.omit({ sort: true }),
    answer: catalog.matrix,
    run: ({ query }) => admin.matrix(query),
  }),
  adminRoute('GET', 'agents/tools', "The tools of the request's agent, with their definitions", {
    query: z.strictObject({ server: z.string().optional(), timeoutMs: z.coerce.number().int().min(0).optional() }),
    answer: catalog.agentTools,
    run: ({ caller, query }) => admin.agentTools(caller, query.server, query.timeoutMs),
  }),
  adminRoute('GET', 'policy', 'Agents, rules, limits and guards as the configuration file defines them', {
    answer: schema.policySettings,
    run: () => admin.policySettings(),
  }),
  adminRoute('POST', 'policy/preview', 'Which permissions an edit of the configuration would change', {
    body: configEdit,
    answer: schema.policyPreview,
    run: ({ body }) => admin.previewPolicy(body),
  }),
  adminRoute(
    'POST',
    'policy/replay',
    'Which recorded calls an edit would decide differently; streams progress, then the result (PolicyReplay)',
    {
      stream: true,
      body: schema.replayRequest,
      async run({ user, body: { edit, days }, signal, response }, { watch, stream }) {
        watch(user, response)
        await stream(response, admin.replayPolicy(edit, days, signal))
        return responseSent
      },
    },
  ),
  userRoute('GET', 'why', 'Whether an agent may use a tool, and by which rule', {
    query: whyQuery,
    answer: catalog.whyView,
    run: ({ caller, query }) => admin.why(caller, query),
  }),
]
