import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'yaml'
import * as z from 'zod'
import { formSchema } from '../../config/editor-schema.ts'
import type { Path } from '../../config/tree.ts'
import type { Caller } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { dayMs } from '../../lib/duration.ts'
import { asRecord } from '../../lib/is-record.ts'
import { Policy } from '../../policy/decide.ts'
import type { PolicyChange } from '../../policy/replay.ts'
import type { ReplayProgress } from '../../runtime/policy-replay.ts'
import type { AuditQueries } from '../audit/audit.ts'
import { toolsQuery, whyQuery } from '../calls/schema.ts'
import type { ConfigEdits } from '../config/config-edit.ts'
import { configEdit } from '../config/schema.ts'
import type { AdminContext } from '../context.ts'
import type {
  ConfigEdit,
  PolicyPart,
  PolicyPreview,
  PolicySettings,
  ReplayStreamEvent,
  ToolsQuery,
  WhyParams,
} from '../contract.ts'
import { adminRoute, type Route, responseSent, userRoute } from '../router.ts'
import * as catalog from '../tools/schema.ts'
import type { ToolsService } from '../tools/tools.ts'
import { withoutMetaTools } from '../tools/visibility.ts'
import { agentNames, agentViews, asAgent, matrixOf, whyFor } from './agents.ts'
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
      let latest: ReplayProgress | undefined
      let finished = false
      let wake = Promise.withResolvers<void>()
      const result = auditQueries
        .replay(
          { config: { agents, policy, defaults, mcpServers }, serversProposed },
          {
            ...{ since, maxRecords: maxReplayRecords, signal },
            progress(done) {
              latest = done
              wake.resolve()
            },
          },
        )
        .finally(() => {
          finished = true
          wake.resolve()
        })
      // A failure is thrown below.
      result.catch(() => {})
      while (!finished) {
        await wake.promise
        wake = Promise.withResolvers()
        if (!finished && latest) yield { kind: 'progress', records: latest.records }
      }
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
      const compare = comparison(generation.policy, policy, agentNames(generation), agentNames({ policy }))
      if (isDeepStrictEqual(config, loaded.config)) return compare.result()
      let started = performance.now()
      for (const { entry } of tools) {
        compare.add(entry)
        if (performance.now() - started < comparisonSliceMs) continue
        await setImmediate()
        started = performance.now()
      }
      return compare.result()
    },
    replayPolicy,
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

function comparison(before: Policy, after: Policy, oldAgents: readonly string[], newAgents: readonly string[]) {
  const agents = [...new Set([...oldAgents, ...newAgents])]
  const callers = agents.map(asAgent)
  const old = new Set(oldAgents)
  const next = new Set(newAgents)
  const touched = new Set<number>()
  const rows: { server: string; tool: string; before: (boolean | null)[]; after: (boolean | null)[] }[] = []
  let [changed, total, omitted] = [0, 0, 0]
  return {
    add(entry: Parameters<Policy['decide']>[1]): void {
      const row = { server: entry.server, tool: entry.name, before: [], after: [] } as (typeof rows)[number]
      let differs = false
      for (const [index, caller] of callers.entries()) {
        const was = old.has(caller.agent) ? before.decide(caller, entry).allowed : null
        const is = next.has(caller.agent) ? after.decide(caller, entry).allowed : null
        row.before.push(was)
        row.after.push(is)
        if (was === is) continue
        changed++
        differs = true
        touched.add(index)
      }
      total += callers.length
      if (!differs) return
      if (rows.length < maxRows) rows.push(row)
      else omitted++
    },
    /** Only the agents for which something changes. */
    result(): PolicyPreview {
      const shown = agents.flatMap((_, index) => (touched.has(index) ? [index] : []))
      const only = (cells: readonly (boolean | null)[]) => shown.map((index) => cells[index] ?? null)
      return {
        agents: shown.map((index) => agents[index] as string),
        rows: rows.map((row) => ({ ...row, before: only(row.before), after: only(row.after) })),
        ...{ changed, total, omitted },
      }
    },
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
