import { createTestConfigEditing } from '../../../src/admin/config/config-edit.fixture.ts'
import type { CallView, ReloadEvent, ServerDetail, ServerView, ToolView } from '../../../src/admin/contract.ts'
import type { AdminService } from '../../../src/admin/service.ts'
import { agentTools } from '../../../src/admin/views.fixture.ts'
import { type callOrders, mapChoices } from '../../../src/core/call-query.ts'
import { ToolwayError } from '../../../src/core/errors.ts'
import { fuzzyScore } from '../../../src/lib/similar-text.ts'
import { callPosition, comparePositions, fits } from '../../../src/telemetry/calls/call-records.ts'
import { answerOf } from './answers.ts'
import { searched } from './audit.ts'
import { createChance } from './chance.ts'
import { noConfig, usualConfig } from './config.ts'
import { overviewOf, statsOf } from './figures.ts'
import { sceneInbox } from './inbox.ts'
import { createSceneKeys } from './keys.ts'
import { scenePins } from './pins.ts'
import { createScenePlayground } from './playground.ts'
import { createScenePolicy } from './policy.ts'
import type { Scene } from './scene.ts'
import { figuresOf } from './servers.ts'
import { sceneSkill, sceneSkillView } from './skills.ts'
import { callAt, detailOf, seriesOf } from './traffic.ts'

const page = <T>(all: readonly T[], cursor: string | undefined, limit: number) => {
  const start = Number(cursor ?? 0)
  const end = start + limit
  return { part: all.slice(start, end), nextCursor: end < all.length ? String(end) : null }
}

/** What the list shows of a server. */
const viewOf = (server: ServerDetail): ServerView => {
  const { launch: _, callsSince: __, toolTokens: ___, offers: ____, connections: _____, ...rest } = server
  const { events: ______, stderr: _______, ...view } = rest
  return view
}

const brief = ({ definition: _, agents: __, calls: ___, ...tool }: Scene['tools'][number]): ToolView => tool

/** With `expose: both`, a model reads all definitions and those of the meta-tools. */
const noneSaved = { direct: 41_000, exposed: 42_650, saved: 0 }

/** A fake admin service with the data of one scene and continuous calls. */
export function createSceneAdmin(scene: Scene, now: () => number): AdminService {
  const startedAt = now() - 11_500_000
  const chance = createChance(23)
  let chain: ReturnType<AdminService['chain']> = { state: 'unknown', checkedAt: null, records: null, problems: [] }
  let numbered = 100_000
  const approvalListeners = new Set<() => void>()

  const tools = (words = '', server?: string) =>
    scene.tools
      .filter((tool) => server === undefined || tool.server === server)
      .filter((tool) =>
        words
          .toLowerCase()
          .split(/\s+/)
          .every((word) => `${tool.name} ${tool.description}`.toLowerCase().includes(word)),
      )
  const serverCalled = (name: string): ServerDetail => {
    const found = scene.servers.find((one) => one.name === name)
    if (!found) throw new ToolwayError('SERVER_NOT_FOUND', `There is no server ${JSON.stringify(name)}.`)
    return found
  }
  const toolCalled = (name: string) => {
    const found = scene.tools.find((one) => one.name === name)
    if (!found) throw new ToolwayError('TOOL_NOT_FOUND', `There is no tool ${JSON.stringify(name)}.`)
    return found
  }
  const told = (): readonly CallView[] => {
    const count = { usual: 1, busy: 1, rush: 80, empty: 0, crowded: 0, failing: 0 }[scene.name]
    const calls = Array.from({ length: count }, () => callAt(now(), `call_${++numbered}`, chance))
    scene.calls.unshift(...calls)
    return calls
  }

  return {
    overview: () => overviewOf(scene, startedAt, now()),
    endpoints: () =>
      scene.name === 'usual'
        ? ['research', 'support'].map((name) => ({
            ...{ name, path: `/mcp/${name}`, url: `http://127.0.0.1:4322/mcp/${name}`, agent: null, expose: 'auto' },
            ...{ description: `Tools for ${name}.`, tools: 12, tokens: { direct: 1900, exposed: 1900, saved: 0 } },
          }))
        : [],
    signIn: () => Promise.reject(noSignIn()),
    signedIn: () => Promise.reject(noSignIn()),
    series: async (_, { from = now() - 3_600_000, to = now() }) =>
      scene.name === 'empty' ? { from, to, stepMs: 10_000, points: [] } : seriesOf(from, to),
    stats: async (_, { by, from = startedAt, to = now() }) => statsOf(scene, by, from, to),
    search: (_, text) => ({
      hits: [
        ...scene.servers.map(({ name, description }) => ({ kind: 'server' as const, name, detail: description })),
        ...scene.tools.map(({ name, description }) => ({ kind: 'tool' as const, name, detail: description })),
        ...scene.agents.map((name) => ({ kind: 'agent' as const, name, detail: '' })),
        ...scene.calls.map(({ id, name }) => ({ kind: 'call' as const, name: id, detail: name })),
      ]
        .filter(({ name }) => fuzzyScore(text, name) > 0)
        .slice(0, 20),
    }),
    servers: ({ admin }) => scene.servers.map((server) => viewOf(admin ? server : { ...server, process: null })),
    server: ({ admin }, name) =>
      admin
        ? serverCalled(name)
        : { ...serverCalled(name), ...{ process: null, launch: null, connections: null, events: [], stderr: [] } },
    async control(_, name, action) {
      const server = serverCalled(name)
      const paused = action === 'disable'
      const next = {
        ...server,
        paused,
        health: paused ? ('disabled' as const) : server.health === 'disabled' ? ('healthy' as const) : server.health,
        since: now(),
      }
      scene.servers[scene.servers.indexOf(server)] = next
      return viewOf(next)
    },
    refreshServers: async () => ({ servers: scene.servers.length, failed: [], running: 0 }),
    grants: async () => [],
    signOut: async () => [],
    async previewOverride(_, name, { name: renamed, description }) {
      const { definition, tokens } = toolCalled(name)
      return {
        definition: { ...definition, ...(renamed && { name: renamed }), ...(description && { description }) },
        tokens: description === undefined ? tokens : Math.ceil(description.length / 4) + 20,
        own: tokens,
        problems: [],
      }
    },
    tools(_, { query, server, cursor, limit }) {
      const found = tools(query, server)
      const { part, nextCursor } = page(found, cursor, limit)
      return { tools: part.map(brief), total: found.length, nextCursor }
    },
    tool: async (_, name) => toolCalled(name),
    ...scenePins(scene, now),
    skills: () => ({ skills: scene.name === 'empty' ? [] : [sceneSkillView] }),
    skill: async () => sceneSkill,
    ...sceneInbox(scene, now, (listener) => approvalListeners.add(listener)),
    tryTool: async (_, name, { arguments: given, agent }) => answerOf(toolCalled(name).tool, given.value, agent),
    ...createScenePlayground(scene.name === 'empty', (name) => toolCalled(name).tool),
    calls: (_, { limit }) => scene.calls.slice(0, limit),
    async pastCalls(_, { sort, cursor, limit, ...filter }) {
      const order = { by: sort.replace('-', '') as (typeof callOrders)[number], descending: sort.startsWith('-') }
      const found = scene.calls
        .filter((call) => fits(call, filter))
        .sort((a, b) => comparePositions(callPosition(a, order), callPosition(b, order), order))
      const { part, nextCursor } = page(found, cursor, limit)
      return { calls: part, total: found.length, nextCursor }
    },
    callChoices: async () =>
      mapChoices((name) => [...new Set(scene.calls.map((call) => call[name] ?? ''))].filter(Boolean).sort()),
    runAgain: async (_, id) => {
      const call = scene.calls.find((one) => one.id === id)
      return answerOf(call?.name ?? '', {}, undefined)
    },
    async call(_, id) {
      const call = scene.calls.find((one) => one.id === id)
      return call && detailOf(call, scene.calls)
    },
    approvals: () => scene.approvals,
    async answerApproval(_, id, { decision }) {
      const index = scene.approvals.findIndex((one) => one.id === id)
      const [approval] = index < 0 ? [] : scene.approvals.splice(index, 1)
      if (!approval) throw new ToolwayError('INVALID_ARGUMENTS', `No approval ${JSON.stringify(id)} is waiting.`)
      for (const listener of approvalListeners) listener()
      const { call, server, tool } = approval
      return { id, call, server, tool, decision }
    },
    onApprovals(listener) {
      approvalListeners.add(listener)
      return { [Symbol.dispose]: () => void approvalListeners.delete(listener) }
    },
    audit: async (asked) => searched(scene.audit, asked),
    chain() {
      if (chain.state === 'checking')
        chain = { state: 'intact', checkedAt: now(), records: scene.audit.length, problems: [] }
      return chain
    },
    verifyChain() {
      chain = { ...chain, state: 'checking' }
      return chain
    },
    agents: () =>
      scene.agents.map((name, index) => ({
        ...{
          name,
          inherits: name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : null,
          expose: index === 2 ? 'meta' : 'both',
        },
        ...{
          isDefault: index === 0,
          limitsPer: 'agent' as const,
          tools: scene.tools.length - index,
          tokens: index === 2 ? { direct: 41_000, exposed: 1_650, saved: 39_350 } : noneSaved,
          perMinute: index === 2 ? 120 : null,
          concurrency: index === 1 ? 8 : null,
        },
        calls: figuresOf(480 - index * 120, 8, index, index * 2),
      })),
    matrix({ query, server, cursor, limit }) {
      const found = tools(query, server)
      const { part, nextCursor } = page(found, cursor, limit)
      const rows = part.map((tool) => ({
        ...{ server: tool.server, tool: tool.tool },
        allowed: scene.agents.map((_, index) => tool.agents[index % 4]?.allowed ?? false),
      }))
      return { agents: scene.agents, rows, total: found.length, nextCursor }
    },
    agentTools: async () => agentTools,
    why: async (_, { agent = 'default', tool }) => {
      const [server = '', ...rest] = tool.split('.')
      const allowed = agent === 'default'
      const rule = allowed ? 'agents.default.allow.servers[0]' : `agents.${agent}.deny.tools.${server}[0]`
      return {
        ...{ agent, server, tool: rest.join('.'), allowed, rule },
        sentence: allowed ? 'It may be used.' : `The agent ${agent} may not use ${tool}: a rule denies it.`,
        decision: { allowed, rule },
        considered: [
          considered('policy.blockedTools', 'passes', 'it is not blocked'),
          considered('policy.allowedServers[0]', 'passes', 'the server is allowed'),
          allowed
            ? considered(rule, 'allows', 'the server is allowed')
            : considered(rule, 'denies', '"write_*" fits the name of the tool'),
        ],
      }
    },
    ...createSceneKeys(scene, now),
    ...createScenePolicy(scene),
    config: () => (scene.name === 'empty' ? noConfig : usualConfig(now())),
    ...createTestConfigEditing(),
    lastReload: () => undefined,
    reload: async (): Promise<ReloadEvent> => ({ at: now(), ok: true, error: null, changes: ['server memory added'] }),
    onCalls(listener) {
      const timer = setInterval(() => listener(told()), scene.name === 'rush' ? 100 : 900)
      return { [Symbol.dispose]: () => clearInterval(timer) }
    },
    onReload: () => ({ [Symbol.dispose]: () => {} }),
  }
}

const noSignIn = () => new ToolwayError('INVALID_ARGUMENTS', 'This gateway does not support signing in to servers.')

/** Every request fails. */
export const createFailingAdmin = (admin: AdminService): AdminService =>
  new Proxy(admin, {
    get: () => () => {
      throw new ToolwayError('INTERNAL', 'The store of the gateway is damaged; its log has the cause.')
    },
  })

const considered = (rule: string, outcome: 'allows' | 'denies' | 'passes', note: string) => ({
  ...{ step: 'agent', rule, outcome, note },
  text: `${outcome}: ${note}`,
})
