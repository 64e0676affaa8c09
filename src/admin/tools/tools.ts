import * as z from 'zod'
import { createNamer } from '../../catalog/names.ts'
import { toolOverride } from '../../config/schema/mcp-servers.ts'
import type { Served } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { refusalOf } from '../../core/decision.ts'
import { type Entry, type EntryOverride, seenName } from '../../core/entry.ts'
import type { Exposure } from '../../core/exposure.ts'
import { tokensOf } from '../../core/tokens.ts'
import { overrideKey, type ToolOverride } from '../../core/tool-overrides.ts'
import { fuzzyScore } from '../../lib/similar-text.ts'
import type { Generation } from '../../runtime/generation.ts'
import { ownAgents } from '../../serve/auth/identity.ts'
import { visibleDefinition } from '../../upstream/listing/definitions.ts'
import { overriddenEntry, overrideProblems } from '../../upstream/listing/overrides.ts'
import { askable, type CallsService } from '../calls/calls.ts'
import { toolsQuery } from '../calls/schema.ts'
import type { AdminContext } from '../context.ts'
import type {
  AgentTools,
  OverridePreview,
  SearchHit,
  SearchResult,
  ToolDetail,
  ToolOrder,
  ToolPage,
  ToolPermission,
  ToolsQuery,
  ToolView,
} from '../contract.ts'
import type { VisibleFigures } from '../overview/figures.ts'
import { adminRoute, bodyArguments, type Route, userRoute } from '../router.ts'
import * as schema from './schema.ts'
import { agentNames, asAgent, selectTools, visibleServers, visibleTools } from './visibility.ts'

export type ToolsService = ReturnType<typeof createToolsAdmin>

export function createToolsAdmin({ current, access }: AdminContext, figures: VisibleFigures) {
  /** Finds a tool by any spelling of its name. For non-admins, the policy applies as it does to a call. */
  const find = async (caller: Caller, name: string): Promise<Served> => {
    const { catalog, policy } = current()
    if (caller.admin) {
      const resolve = (who: Caller) => catalog.view(who, { hideDenied: false }).resolve('tool', name)
      // Some servers list a tool only to clients that can be asked, as the playground can.
      return resolve(caller).catch((thrown) =>
        resolve({ ...caller, capabilities: askable }).catch(() => Promise.reject(thrown)),
      )
    }
    const served = await access.view(caller).resolve('tool', name, { operation: 'find' })
    const decision = policy.decide(caller, served.entry)
    if (!decision.allowed) {
      const { principal, address, agent } = caller
      access.rejected({ code: decision.code, principal, address, asked: agent, detail: `tool: ${name}` })
      throw refusalOf(decision, served.entry.server)
    }
    return served
  }

  return {
    tools(caller: Caller, query: ToolsQuery): ToolPage {
      const generation = current()
      const all = visibleTools(caller, generation)
      const { tools, ...page } = selectTools(query.sort ? sortTools(all, query.sort, generation) : all, query)
      return { tools: tools.map((tool) => viewTool(tool, generation)), ...page }
    },
    async tool(caller: Caller, name: string): Promise<ToolDetail> {
      const served = await find(caller, name)
      const generation = current()
      const { name: servedName, entry, definition, isPortable } = served
      return {
        ...viewTool(served, generation),
        // Operators see and try the original.
        definition: isPortable ? { ...entry.definition, name: servedName } : definition,
        verbatim: caller.admin ? entry.verbatim : undefined,
        override: entry.override && plainOverride(entry.override),
        agents: permissions(caller, entry, generation),
        calls: figures.of(caller, 'tool', `${entry.server}.${entry.name}`),
      }
    },
    /** What models would see of a tool with another override. Changes nothing. */
    async previewOverride(caller: Caller, name: string, override: ToolOverride): Promise<OverridePreview> {
      return previewOverride(await find(caller, name), override, current())
    },
    /** The tools of the caller's agent. Waits for servers that are starting. */
    async agentTools(caller: Caller, server?: string, timeoutMs?: number): Promise<AgentTools> {
      const view = access.view(caller)
      await (server === undefined ? view.ready() : view.started(server, { timeoutMs }))
      const listed = (tools: readonly Served[]) =>
        tools.map(({ name, definition, entry: { server, name: tool, checksItself } }) => {
          return { name, definition, entry: { server, name: tool, checksItself } }
        })
      const shown = (mode: Exposure) => listed(view.shown(mode))
      const refusal = server === undefined ? undefined : view.refusal(server, 'tool')
      return {
        all: listed(view.list('tool')),
        shown: { direct: shown('direct'), meta: shown('meta'), both: shown('both'), code: shown('code') },
        expose: view.exposure(),
        servers: view.servers().map(({ name, tools, status }) => ({ name, tools, status: { ...status } })),
        refusal: refusal ? { ...refusal.data, message: refusal.message } : null,
      }
    },
  }
}

function previewOverride({ entry }: Served, override: ToolOverride, { catalog, loaded }: Generation): OverridePreview {
  const siblings = catalog.everything('tool').flatMap((tool) => (tool.entry.server === entry.server ? tool.entry : []))
  const { definition: own } = visibleDefinition('tool', entry.verbatim ?? entry.definition)
  const next = overriddenEntry({ ...entry, definition: own }, override, new Set(siblings.map(({ name }) => name)))
  const nameOf = createNamer(loaded.config.naming)
  const served = (name: string) => nameOf(entry.server, name).plain[0] ?? name
  const definition = { ...next.definition, name: served(seenName(next)) }
  const selection = { include: [], exclude: [], [overrideKey(entry.name)]: override }
  return {
    definition,
    tokens: tokensOf(definition.name, definition),
    own: tokensOf(served(entry.name), own),
    problems: overrideProblems(
      entry.server,
      selection,
      siblings.map(({ name }) => (name === entry.name ? own : { name })),
    ),
  }
}

const plainOverride = ({ name, hidden, tags }: EntryOverride) => ({ ...(name && { name }), hidden, tags: [...tags] })

function viewTool({ name, entry }: Served, { pins }: Generation): ToolView {
  const { title, description = '', annotations } = entry.definition
  const { title: older } = (annotations ?? {}) as { title?: unknown }
  const shown = [title, older].find((text) => typeof text === 'string')
  const { state } = pins.check(entry)
  return {
    name,
    server: entry.server,
    tool: entry.name,
    title: (shown as string | undefined) ?? null,
    description,
    access: accessOf(entry),
    tokens: tokensOf(name, entry.definition),
    pin: state?.state ?? 'off',
    quarantined: state?.quarantined ?? false,
    flags: pins.flagsOf(entry),
  }
}

const toolOrderKeys: Readonly<Record<ToolOrder, (tool: Served, generation: Generation) => string | number>> = {
  tool: ({ name }) => name,
  server: ({ entry }) => entry.server,
  access: ({ entry }) => accessOf(entry),
  definition: ({ entry }, { pins }) => pins.check(entry).state?.state ?? 'off',
  tokens: ({ name, entry }) => tokensOf(name, entry.definition),
}

/** Sorts tools. Equal ones stay in the order in which they are served, so that pages follow one another. */
function sortTools(
  tools: readonly Served[],
  sort: ToolOrder | `-${ToolOrder}`,
  generation: Generation,
): readonly Served[] {
  const descending = sort.startsWith('-')
  const valueIn = toolOrderKeys[sort.replace('-', '') as ToolOrder]
  return tools
    .map((tool) => ({ tool, value: valueIn(tool, generation) }))
    .sort(({ value: a }, { value: b }) => (a === b ? 0 : a < b === descending ? 1 : -1))
    .map(({ tool }) => tool)
}

/** `read` if the configuration or a trusted server says so; `destructive` if any server, trusted or not, says so. */
function accessOf({ traits, definition }: Entry): ToolView['access'] {
  if (traits.readOnly) return 'read'
  const { destructiveHint } = (definition.annotations ?? {}) as { destructiveHint?: unknown }
  return destructiveHint === true ? 'destructive' : 'write'
}

/** The agents that may use the tool. Admins see all agents; others see the agents that they may act as. */
function permissions(caller: Caller, entry: Entry, generation: Generation): ToolPermission[] {
  const own = ownAgents(caller)
  const agents = agentNames(generation).filter((agent) => caller.admin || own.has(agent))
  return agents.map((agent) => {
    const { allowed, rule } = generation.policy.decide(asAgent(agent), entry)
    return { agent, allowed, rule }
  })
}

const maxHits = 20
/** Shorter texts occur in the ids of too many calls. */
const minIdLength = 4

export function createSearch({ current, calls }: AdminContext) {
  return {
    search(caller: Caller, text: string): SearchResult {
      const generation = current()
      const ranked: { readonly hit: SearchHit; readonly score: number }[] = []
      const offer = (kind: SearchHit['kind'], name: string, detail: string, among = name) => {
        const score = fuzzyScore(text, among)
        if (score > 0) ranked.push({ hit: { kind, name, detail: detail.slice(0, 200) }, score })
      }
      for (const { name, status } of visibleServers(caller, generation)) offer('server', name, status.description)
      for (const { name, entry } of visibleTools(caller, generation))
        offer('tool', name, entry.definition.description ?? '')
      for (const agent of caller.admin ? agentNames(generation) : [caller.agent]) offer('agent', agent, '')
      const wanted = text.trim().toLowerCase()
      if (wanted.length >= minIdLength) {
        const visible = caller.admin ? {} : { agent: caller.agent }
        for (const { id, server, name } of calls.list(visible, Number.MAX_SAFE_INTEGER))
          if (id.toLowerCase().includes(wanted)) offer('call', id, `${server}.${name}`)
      }
      const hits = ranked.sort((a, b) => b.score - a.score).slice(0, maxHits)
      return { hits: hits.map(({ hit }) => hit) }
    },
  }
}

type ToolsAndSearch = ToolsService & ReturnType<typeof createSearch> & Pick<CallsService, 'tryTool'>

export const toolsRoutes = (admin: ToolsAndSearch): readonly Route[] => [
  userRoute('GET', 'search', 'Finds servers, tools, agents and recent calls by name or id', {
    query: schema.searchQuery,
    answer: schema.searchResult,
    run: ({ caller, query }) => admin.search(caller, query.q),
  }),
  userRoute('GET', 'tools', 'The tools, in the order in which they are served', {
    query: toolsQuery,
    answer: schema.toolPage,
    run: ({ caller, query }) => admin.tools(caller, query),
  }),
  userRoute('GET', 'tools/{name}', 'One tool, its definition and who may use it', {
    answer: schema.toolDetail,
    run: ({ caller, target }) => admin.tool(caller, target),
  }),
  adminRoute('POST', 'tools/{name}/preview', 'What models would see of a tool with another override; changes nothing', {
    body: z.strictObject({ override: toolOverride }),
    answer: schema.overridePreview,
    run: ({ caller, target, body }) => admin.previewOverride(caller, target, body.override),
  }),
  userRoute('POST', 'tools/{name}/call', 'Calls a tool as one of the agents that the credential may act as', {
    body: z.strictObject({
      arguments: z.record(z.string(), z.unknown()).default({}).describe('Its arguments.'),
      agent: z.string().optional().describe("The agent to act as. Default: the credential's agent."),
      timeoutMs: z.int().min(1).optional().describe("The call's time limit. Default: as configured."),
    }),
    answer: schema.tryResult,
    run({ caller, target, body, bytes, signal }) {
      return admin.tryTool(caller, target, { ...body, arguments: bodyArguments(bytes) }, signal)
    },
  }),
]
