import type { Exposure, Served, View } from '../../core/access.ts'
import { waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { costOf, exposures, tokensOf } from '../../core/tokens.ts'
import { schemaProblem } from '../../policy/arguments/validate.ts'
import { properties } from '../input-schema.ts'
import { commandName, createOutput, createProgress, type ExitCode, exit, type Output, type Shell } from '../kit.ts'
import type { CommonOptions } from '../load.ts'
import { openBriefly } from '../open.ts'
import { firstSentence, oneLine, printable, table } from '../table.ts'

interface ToolsOptions extends CommonOptions {
  readonly server?: string
  readonly wait: number
  readonly agent?: string
}

/** Lists the tools under the names they are served by. */
export async function listTools(shell: Shell, options: ToolsOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  await using gateway = await openBriefly(shell, options)
  const caller = gateway.localAs(options.agent)
  const view = gateway.view(caller)
  await known(view, shell, options)
  // Whoever names an agent wants to know what its client is shown; the operator sees all there is.
  const offered = options.agent === undefined ? view.list('tool') : view.shown()
  const ofServer = ({ entry }: Served) => options.server === undefined || entry.server === options.server
  const tools = offered.filter(ofServer)
  const hidden = view.list('tool').filter(ofServer).length - tools.length
  const silent = view.servers().filter(({ status, tools }) => tools === 0 && status.reason !== '')
  if (tools.length === 0 && options.server !== undefined) refuseUnknown(view, options.server)
  const problems = await unusableIn(tools)
  if (options.json) output.value({ tools: tools.map((tool) => ({ ...asJson(tool), problem: problems.get(tool) })) })
  else printTools(tools, output)
  for (const [{ name }, problem] of problems)
    output.note(output.paintNote('yellow', `${name} cannot be used: ${problem}`))
  for (const { name, status } of silent) {
    if (options.server === undefined || options.server === name) {
      const longer =
        status.health === 'stale' || status.health === 'starting'
          ? '; --wait 5m gives a first start the time to fetch its program'
          : ''
      output.note(output.paintNote('yellow', `${name} has no tools to show: ${status.reason}${longer}`))
    }
  }
  if (hidden > 0) {
    const more = `${hidden} more can be called by name; the agent is not shown them (expose).`
    output.note(output.paintNote('dim', more))
  }
  return exit.ok
}

/** Tools that no call can reach, and why. */
async function unusableIn(tools: readonly Served[]): Promise<Map<Served, string>> {
  const problems = new Map<Served, string>()
  for (const tool of tools) {
    const { checksItself, definition } = tool.entry
    const reason = checksItself || !definition.inputSchema ? undefined : await schemaProblem(definition.inputSchema)
    if (reason !== undefined) problems.set(tool, `its input schema cannot be compiled (${reason})`)
  }
  return problems
}

/** Waits until the servers have said what they have, telling that it does. */
export async function known(
  view: View,
  shell: Shell,
  asked: { readonly server?: string | undefined; readonly wait: number },
): Promise<void> {
  const { server, wait } = asked
  using progress = createProgress(shell)
  progress.show('Asking the servers …')
  const ready = server === undefined ? view.ready() : view.started(server, { timeoutMs: wait })
  await waitFor(ready, shell.interrupted)
}

export function refuseUnknown(view: View, server: string): void {
  const refusal = view.refusal(server, 'tool')
  if (refusal) throw refusal
  const names = view.servers().map(({ name }) => name)
  if (names.includes(server)) return
  const sentence = `There is no server ${server}; there is ${names.join(', ') || 'none'}.`
  throw new ToolwayError('SERVER_NOT_FOUND', sentence, { server })
}

const asJson = ({ name, entry, definition }: Served) => ({
  name,
  server: entry.server,
  tool: entry.name,
  description: definition.description ?? '',
})

function printTools(tools: readonly Served[], { print, paint, width }: Output): void {
  const lines = table<Served>(
    [
      { title: 'NAME', value: ({ name }) => name, whole: true },
      { title: 'SERVER', value: ({ entry }) => entry.server, style: (cell) => paint('dim', cell) },
      { title: 'DESCRIPTION', value: ({ definition }) => firstSentence(definition.description ?? '') },
    ],
    tools,
    { width, heading: (title) => paint('dim', title) },
  )
  for (const line of lines) print(line)
}

interface ShowOptions extends CommonOptions {
  readonly wait: number
  readonly agent?: string
}

/** Shows one tool with its full definition. */
export async function showTool(shell: Shell, name: string, options: ShowOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  await using gateway = await openBriefly(shell, options)
  const caller = gateway.localAs(options.agent)
  const wait = { signal: shell.interrupted, timeoutMs: options.wait }
  const served = await gateway.view(caller).resolve('tool', name, wait)
  if (options.json) output.value(served.definition)
  else printTool(served, output, commandName(shell.env))
  return exit.ok
}

function printTool({ name, entry, definition }: Served, { print, paint, width }: Output, command: string): void {
  const { description, inputSchema, outputSchema, annotations, title } = definition
  const section = (heading: string, lines: readonly string[]) => {
    print('')
    print(paint('bold', heading))
    for (const line of lines) print(`  ${line}`)
  }
  const json = (value: unknown) => printable(JSON.stringify(value, undefined, 2)).split('\n')

  const own = oneLine(entry.name)
  print(`${paint('bold', name)}  ${paint('dim', `${own} of ${entry.server}`)}`)
  if (typeof title === 'string') print(oneLine(title))
  if (description) section('Description', printable(description).trim().split('\n'))
  const taken = properties(inputSchema)
  if (taken.length > 0) section('Arguments', argumentsTable(taken, paint, width - 2))
  if (inputSchema) section('Input schema', json(inputSchema))
  if (outputSchema) section('Output schema', json(outputSchema))
  if (annotations) section('Annotations', json(annotations))
  const example = taken.filter(({ required }) => required).map(({ name: key }) => `${oneLine(key)}=…`)
  section('Call', [[command, 'call', `${entry.server}.${own}`, ...example].join(' ')])
}

function argumentsTable(taken: ReturnType<typeof properties>, paint: Output['paint'], width: number): string[] {
  return table(
    [
      { title: 'NAME', value: ({ name }) => name },
      { title: 'TYPE', value: ({ type }) => type },
      { title: 'NEEDED', value: ({ required }) => (required ? 'yes' : '') },
      { title: 'DESCRIPTION', value: ({ description }) => description },
    ],
    taken,
    { width, heading: (title) => paint('dim', title) },
  )
}

interface CostOptions extends ToolsOptions {
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
  else printCosts(cost, output)
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

function printCosts({ agent, expose, modes, saved, servers, tools }: Cost, { print, paint, width }: Output): void {
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
