import type { Exposure, Served, View } from '../../core/access.ts'
import { costOf, exposures } from '../../core/costs.ts'
import { tokensOf } from '../../core/tokens.ts'
import { type ExitCode, exit } from '../exit.ts'
import { openBriefly } from '../open.ts'
import { createOutput, type Output } from '../output.ts'
import type { Shell } from '../shell.ts'
import { table } from '../table.ts'
import { known, refuseUnknown, type ToolsOptions } from './tools.ts'

export interface CostOptions extends ToolsOptions {
  readonly top: number
}

/** What an agent's tools cost a model's context (B8). */
interface Cost {
  readonly agent: string
  /** How the agent sees tools. */
  readonly expose: Exposure
  readonly modes: Readonly<Record<Exposure, { readonly tools: number; readonly tokens: number }>>
  /** What the agent's mode keeps out of its context; never less than nothing. */
  readonly saved: number
  /** Of all definitions, ours among them, the most expensive first. */
  readonly servers: readonly { readonly server: string; readonly tools: number; readonly tokens: number }[]
  readonly tools: readonly { readonly name: string; readonly server: string; readonly tokens: number }[]
}

/** Shows what tools cost a model's context, in each exposure mode, by server and by tool. */
export async function showCost(shell: Shell, options: CostOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  await using gateway = await openBriefly(shell, options)
  const caller = gateway.localAs(options.agent)
  const view = gateway.view(caller)
  await known(view, shell, { wait: options.wait })
  if (options.server !== undefined && options.server !== 'toolway') refuseUnknown(view, options.server)
  const cost = costFor(caller.agent, view, options)
  if (options.json) output.value(cost)
  else print(cost, output)
  return exit.ok
}

function costFor(agent: string, view: View, { server, top }: CostOptions): Cost {
  const wanted = (tools: readonly Served[]) =>
    server === undefined ? tools : tools.filter(({ entry }) => entry.server === server)
  const inMode = (mode: Exposure) => {
    const tools = wanted(view.shown(mode))
    return { tools: tools.length, tokens: costOf(tools) }
  }
  const modes = { direct: inMode('direct'), meta: inMode('meta'), both: inMode('both'), code: inMode('code') }
  // A view gives the same list for the same mode.
  const expose = exposures.find((mode) => view.shown(mode) === view.shown()) ?? 'both'
  const tools = wanted(view.shown('both'))
    .map(({ name, entry, definition }) => ({ name, server: entry.server, tokens: tokensOf(name, definition) }))
    .sort((a, b) => b.tokens - a.tokens)
  const servers = [...Map.groupBy(tools, (tool) => tool.server)]
    .map(([of, own]) => ({ server: of, tools: own.length, tokens: own.reduce((sum, { tokens }) => sum + tokens, 0) }))
    .sort((a, b) => b.tokens - a.tokens)
  const saved = Math.max(0, modes.direct.tokens - modes[expose].tokens)
  return { agent, expose, modes, saved, servers, tools: tools.slice(0, top) }
}

function print({ agent, expose, modes, saved, servers, tools }: Cost, { print, paint, width }: Output): void {
  const heading = (title: string) => paint('dim', title)
  const tokens = { title: 'TOKENS', value: (row: { tokens: number }) => String(row.tokens), whole: true }
  const own = (mode: Exposure) => (mode === expose ? `as ${agent} sees them${savedText(saved)}` : '')
  const rows = exposures.map((mode) => ({ mode, ...modes[mode] }))
  const columns = [
    { title: 'MODE', value: ({ mode }: (typeof rows)[number]) => mode, whole: true },
    { title: 'TOOLS', value: ({ tools }: (typeof rows)[number]) => String(tools), whole: true },
    tokens,
    { title: '', value: ({ mode }: (typeof rows)[number]) => own(mode) },
  ]
  for (const line of table(columns, rows, { width, heading })) print(line)
  if (tools.length === 0) return
  print('')
  const perServer = [
    { title: 'SERVER', value: ({ server }: (typeof servers)[number]) => server, whole: true },
    { title: 'TOOLS', value: ({ tools }: (typeof servers)[number]) => String(tools), whole: true },
    tokens,
  ]
  for (const line of table(perServer, servers, { width, heading })) print(line)
  print('')
  const perTool = [
    { title: 'TOOL', value: ({ name }: (typeof tools)[number]) => name, whole: true },
    { title: 'SERVER', value: ({ server }: (typeof tools)[number]) => server },
    tokens,
  ]
  for (const line of table(perTool, tools, { width, heading })) print(line)
}

const savedText = (saved: number): string => (saved === 0 ? '' : `, which keeps ${saved} out of the context`)
