import type { Served } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { refusalOf } from '../../core/decision.ts'
import type { Entry } from '../../core/entry.ts'
import { tokensOf } from '../../core/tokens.ts'
import type { Permission, ToolDetail, ToolPage, ToolView } from '../../serve/admin/contract.ts'
import type { ToolsAsked } from '../../serve/admin/port.ts'
import type { World } from '../generation.ts'
import { agentsOf, asAgent } from './agents.ts'
import type { AdminParts } from './context.ts'
import type { SeenFigures } from './figures.ts'
import { select, toolsSeenBy } from './visibility.ts'

/** The tools as somebody sees them. */
export interface Tools {
  list(caller: Caller, asked: ToolsAsked): ToolPage
  one(caller: Caller, name: string): Promise<ToolDetail>
}

export function createTools({ present, access }: AdminParts, figures: SeenFigures): Tools {
  /** In any spelling; for who is no admin as if they had called it. */
  const find = async (caller: Caller, name: string): Promise<Served> => {
    const { catalog, policy } = present()
    if (caller.admin) return catalog.view(caller).resolve('tool', name)
    const served = await access.view(caller).resolve('tool', name)
    const decision = policy.decide(caller, served.entry)
    if (!decision.allowed) throw refusalOf(decision, served.entry.server)
    return served
  }

  return {
    list(caller, asked) {
      const world = present()
      const { tools, ...page } = select(toolsSeenBy(caller, world), asked)
      return { tools: tools.map((tool) => viewOf(tool, world)), ...page }
    },
    async one(caller, name) {
      const served = await find(caller, name)
      const world = present()
      const { entry, definition } = served
      return {
        ...viewOf(served, world),
        definition,
        agents: permissions(caller, entry, world),
        calls: figures.of(caller, 'tool', `${entry.server}.${entry.name}`),
      }
    },
  }
}

function viewOf({ name, entry }: Served, { pins }: World): ToolView {
  const { title, description = '', annotations } = entry.definition
  const { title: older } = (annotations ?? {}) as { title?: unknown }
  const shown = [title, older].find((text) => typeof text === 'string')
  return {
    name,
    server: entry.server,
    tool: entry.name,
    title: (shown as string | undefined) ?? null,
    description,
    access: accessOf(entry),
    tokens: tokensOf(name, entry.definition),
    pin: pinOf(entry, pins),
    flags: pins.flagsOf(entry),
  }
}

/** What the operator knows counts; that something destroys is believed of whoever says it. */
function accessOf({ traits, definition }: Entry): ToolView['access'] {
  if (traits.readOnly) return 'read'
  const { destructiveHint } = (definition.annotations ?? {}) as { destructiveHint?: unknown }
  return destructiveHint === true ? 'destructive' : 'write'
}

function pinOf(entry: Entry, pins: World['pins']): ToolView['pin'] {
  const { state } = pins.check(entry)
  if (!state) return 'off'
  if (state.quarantined) return 'quarantined'
  if (state.condition === 'unapproved') return 'new'
  return state.condition === 'changed' ? 'changed' : 'pinned'
}

/** Of every agent for admins, else of those that the caller may be. */
function permissions(caller: Caller, entry: Entry, world: World): Permission[] {
  const own = new Set(caller.agents === '*' ? [caller.agent] : [caller.agent, ...caller.agents])
  const agents = agentsOf(world).filter((agent) => caller.admin || own.has(agent))
  return agents.map((agent) => {
    const { allowed, rule } = world.policy.decide(asAgent(agent), entry)
    return { agent, allowed, rule }
  })
}
