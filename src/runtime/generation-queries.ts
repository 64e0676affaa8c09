import type { Offers } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Language } from '../core/executor.ts'
import { knownClient } from '../core/known-clients.ts'
import { metaSource } from '../core/source.ts'
import { tokenAccount } from '../core/tokens.ts'
import { withoutHidden } from '../lib/characters.ts'
import { asRecord } from '../lib/is-record.ts'
import { chatEntry } from '../pipeline/index.ts'
import { defaultAgent } from '../policy/agents.ts'
import { mayUseSome } from '../policy/decide.ts'
import { conditionsOf, type Why } from '../policy/explanation.ts'
import { codeTool, environmentAsked } from '../tools/code/execute-code.ts'
import type { GatewayStatus, StatusRefusal } from '../tools/meta/index.ts'
import { joinOffers, type ServerOffers } from '../upstream/listing/offers.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import type { Generation } from './generation.ts'
import { version } from './package-paths.ts'
import type { ReloadStatus } from './reload.ts'
import { serversOf } from './upstream-servers.ts'

/**
 * Explains to an operator whether an agent may use a tool, for `toolway why` and the dashboard. Accepts any spelling of
 * the tool, and explains denials that are hidden from the agent (`policy.hideDenied`) as well.
 */
export async function explainDecision(
  { policy, catalog, token, inboundAuth, loaded }: Generation,
  { agent: name, tool, authenticated }: { agent: string; tool: string; authenticated: boolean },
  operator: Caller,
): Promise<Why> {
  const credential = authenticated || token !== undefined ? operator : await inboundAuth.authenticate(undefined)
  const agent = policy.agents.size === 0 ? name : policy.agentOf(credential, name)
  const view = catalog.view({ ...operator, agent }, { hideDenied: false })
  const resolve = async () => (isChat(tool) ? chatEntry : (await view.resolve('tool', tool)).entry)
  // Lookups do not wait for servers that the agent may not use. Wait here: the operator may ask about their tools.
  const entry = await resolve().catch(async (thrown) => {
    if (!ToolwayError.from(thrown).kind.denial) throw thrown
    await catalog.ready()
    return resolve()
  })
  const explanation = policy.explain(agent, entry, { authenticated })
  const conditions = explanation.decision.allowed ? conditionsOf(loaded.config, agent, entry) : []
  const considered = [...explanation.considered, ...conditions]
  return { agent, server: entry.server, tool: entry.name, served: entry.override?.name, ...explanation, considered }
}

/** Whether a spelling means chats, which rules and limits name like a tool although they are none. */
const isChat = (spelling: string): boolean => ['.', '::', '/', '__'].some((by) => spelling === `toolway${by}chat`)

export function gatewayStatus(
  { loaded: { config, files }, warnings, policy }: Generation,
  { admin, agent }: Caller,
  reload: ReloadStatus,
): GatewayStatus | StatusRefusal {
  const { allowed, rule } = policy.mayDebug(agent)
  if (!admin && !allowed) return { refusedBy: rule }
  return {
    version,
    reload_status: { ...reload, warnings },
    policy_state: {
      agents: Object.keys(config.agents),
      default_agent: config.defaults.agent ?? null,
      deny_on_missing_agent: config.defaults.denyOnMissingAgent,
    },
    config_paths: files.map(({ path }) => path),
  }
}

/** Capabilities and instructions from the servers that a caller may use. */
export const offersTo = (caller: Caller, generation: Generation): Offers =>
  joinOffers(
    serversOf(generation)
      .filter((server) => mayUseSome(generation.policy, caller, server.name, server.entries()))
      .map((server) => serverOffers(server, generation)),
    {
      isShort: knownClient(caller.client).searchesTools,
      hasSkills: generation.catalog.view(caller).list('skill').length > 0,
    },
  )

/** A server's capabilities and instructions, without quarantined instructions. */
function serverOffers({ name, capabilities, instructions }: UpstreamServer, { pins }: Generation): ServerOffers {
  const { usable } = pins.checkServer(name, instructions)
  return { name, capabilities, instructions: usable ? withoutHidden(instructions) : '' }
}

export type ToolInvocation = readonly [caller: Caller, tool: string, args: Readonly<Record<string, unknown>>]

/**
 * The sandbox environment that a call to `execute_code` names, also if `execute_tool` runs it. Returns no promise for
 * calls without that argument.
 */
export const environmentOf = (
  generation: Generation,
  ...call: ToolInvocation
): Promise<string | undefined> | undefined =>
  call[2].environment === undefined && asRecord(call[2].args).environment === undefined
    ? undefined
    : lookUpEnvironment(generation, call)

async function lookUpEnvironment(
  { catalog, policy, loaded }: Generation,
  [caller, name, args]: ToolInvocation,
): Promise<string | undefined> {
  const languages = loaded.config.sandbox.languages as readonly Language[]
  try {
    const { entry } = await catalog.view(caller).resolve('tool', name)
    if (entry.server === 'native' && entry.name === codeTool) return environmentAsked(caller, args, languages)
    const { agent_id: agent, server, tool, args: nested } = args
    if (entry.server !== metaSource || entry.name !== 'execute_tool') return undefined
    if (server !== 'native' || tool !== codeTool) return undefined
    const actor = policy.actAs({ caller, entry }, typeof agent === 'string' ? agent : undefined)
    return environmentAsked(actor, asRecord(nested), languages)
  } catch {
    // Unknown tools and agents are ignored here: the call fails later, in the pipeline.
    return undefined
  }
}

/** Token cost for a client that may use all tools and has this agent's exposure mode. */
export const tokenAccountOfAll = ({ catalog, policy }: Generation, agent: string = defaultAgent) =>
  tokenAccount({ shown: (exposure) => catalog.shown(exposure ?? policy.exposureOf(agent)) })
