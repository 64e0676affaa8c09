import { changedFields, linesOf } from '../../catalog/pins/definition.ts'
import { findingText, visible } from '../../catalog/scan/finding.ts'
import { ToolNames } from '../../catalog/scan/lookalike-names.ts'
import { scanAmong } from '../../catalog/scan/scan.ts'
import type { Served } from '../../core/access.ts'
import { endWith } from '../../core/deadline.ts'
import { type Entry, seenName } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { type Exposure, exposures } from '../../core/exposure.ts'
import { metaSource } from '../../core/source.ts'
import { isSilent } from '../../core/source-status.ts'
import { tokenCost, tokensOf } from '../../core/tokens.ts'
import { overridePath } from '../../core/tool-overrides.ts'
import { schemaProblem } from '../../policy/arguments/validate.ts'
import { properties } from '../arguments.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, createProgress, type Output, type Shell } from '../kit.ts'
import { openForCommand } from '../open.ts'
import type { CommandView } from '../running-gateway.ts'
import { firstSentence, oneLine, printable, table } from '../table.ts'

type ToolsOptions = OptionsOf<'tools list'>

/** Lists the tools under the names that clients see. */
export async function listTools(shell: Shell, options: ToolsOptions): Promise<void> {
  const output = createOutput(shell, options.json)
  await using gateway = await openForCommand(shell, options)
  const caller = gateway.localAs(options.agent)
  const view = gateway.view(caller)
  await waitForTools(view, shell, options.wait, options.server)
  // With --agent, list only the tools that this agent's clients are shown; otherwise list all tools.
  const offered = options.agent === undefined ? view.list('tool') : view.shown()
  const isWanted = (server: string) => options.server === undefined || server === options.server
  const tools = offered.filter(({ entry }) => isWanted(entry.server))
  const hidden = view.list('tool').filter(({ entry }) => isWanted(entry.server)).length - tools.length
  const silent = view.servers().filter(({ name, status, tools }) => tools === 0 && status.reason && isWanted(name))
  if (tools.length === 0 && options.server !== undefined) requireServer(view, options.server)
  const problems = await unusableIn(tools)
  if (options.json) output.value({ tools: tools.map((tool) => ({ ...asJson(tool), problem: problems.get(tool) })) })
  else printTools(tools, output)
  for (const [{ name }, problem] of problems) output.warn(`${name} cannot be used: ${problem}`)
  for (const { name, status } of silent) {
    const longer = isSilent(status.health) ? '; use --wait 5m to leave time for downloading its program' : ''
    output.warn(`${name} has no tools: ${status.reason}${longer}`)
  }
  const more = `Tools that are not shown to the agent (expose) but can be called by name: ${hidden}.`
  if (hidden > 0) output.note(output.paintNote('dim', more))
}

/** Tools that cannot be called, and why. */
async function unusableIn(tools: readonly Served[]): Promise<Map<Served, string>> {
  const problems = new Map<Served, string>()
  for (const tool of tools) {
    const { entry, definition } = tool
    const reason =
      entry.checksItself || !definition.inputSchema ? undefined : await schemaProblem(definition.inputSchema)
    if (reason !== undefined) problems.set(tool, `its input schema cannot be compiled (${reason})`)
  }
  return problems
}

export async function waitForTools(view: CommandView, shell: Shell, wait: number, server?: string): Promise<void> {
  using progress = createProgress(shell)
  progress.show('Waiting for the servers …')
  const ready = server === undefined ? view.ready() : view.started(server, { timeoutMs: wait })
  await endWith(shell.interrupted, ready)
}

function requireServer(view: CommandView, server: string): void {
  const refusal = view.refusal(server, 'tool')
  if (refusal) throw refusal
  const names = view.servers().map(({ name }) => name)
  if (names.includes(server)) return
  const message = `There is no server ${server}. Servers: ${names.join(', ') || 'none'}.`
  throw new ToolwayError('SERVER_NOT_FOUND', message, { server })
}

const asJson = ({ name, entry, definition }: Served) => ({
  name,
  server: entry.server,
  tool: entry.name,
  description: definition.description ?? '',
})

function printTools(tools: readonly Served[], output: Output): void {
  output.table<Served>(tools, [
    { title: 'NAME', value: ({ name }) => name, whole: true },
    { title: 'SERVER', value: ({ entry }) => entry.server, style: (cell) => output.paint('dim', cell) },
    { title: 'FLAGS', value: (tool) => flagsOf(tool).join(', '), style: (cell) => output.paint('red', cell) },
    { title: 'DESCRIPTION', value: ({ definition }) => firstSentence(definition.description ?? '') },
  ])
}

const flagsOf = ({ definition }: Served): readonly string[] =>
  (definition._meta?.['dev.toolway/flags'] ?? []) as string[]

export async function showTool(shell: Shell, name: string, options: ToolsOptions): Promise<void> {
  const output = createOutput(shell, options.json)
  await using gateway = await openForCommand(shell, options)
  const caller = gateway.localAs(options.agent)
  const lookup = { operation: 'find', signal: shell.interrupted, timeoutMs: options.wait, timeoutKey: '--wait' }
  const served = await gateway.view(caller).resolve('tool', name, lookup)
  const { decision } = await gateway.why(caller.agent, name)
  const isBlocked = !decision.allowed && decision.code === 'QUARANTINED'
  if (options.json)
    output.value(isBlocked ? { blocked: 'not shown to models', ...served.definition } : served.definition)
  else if (isBlocked) printBlocked(served, output, shell.command)
  else printTool(served, output, shell.command)
  if (options.json) return
  const findings = findingsIn(served, gateway.view(caller).list('tool'))
  output.section(
    'Scanner findings',
    findings.map((line) => output.paint('red', line)),
  )
}

/** What the scanner found in a flagged tool, one finding per line. */
function findingsIn(tool: Served, tools: readonly Served[]): readonly string[] {
  const { entry } = tool
  const names = new ToolNames()
  for (const { entry: other, definition } of tools)
    if (other.server !== entry.server) names.add(other.server, other.name, definition.description)
  const findings = scanAmong(names, entry, entry.verbatim ?? entry.definition)
  return findings.filter(({ kind }) => flagsOf(tool).includes(kind)).map(findingText)
}

/** Prints a definition that no model sees, escaped, so that an agent that reads the output can tell it from our text. */
function printBlocked({ name, entry }: Served, { print, paint }: Output, command: string): void {
  const label = visible(`${entry.server}.${entry.name}`)
  print(`${paint('bold', name)}  ${paint('dim', label)}`)
  print('--- blocked: not shown to models ---')
  for (const line of linesOf(entry.verbatim ?? entry.definition)) print(`| ${line}`)
  print('--- end of blocked text ---')
  print(`Review it with \`${command} pins show ${label}\`.`)
}

function printTool({ name, entry, definition }: Served, output: Output, command: string): void {
  const { description, inputSchema, outputSchema, annotations, title } = definition
  const { print, section, paint, width } = output
  const json = (value: unknown) => printable(JSON.stringify(value, undefined, 2)).split('\n')

  const own = oneLine(entry.name)
  print(`${paint('bold', name)}  ${paint('dim', `${own} of ${entry.server}`)}`)
  if (entry.override) print(paint('dim', oneLine(overrideText(entry))))
  if (typeof title === 'string') print(oneLine(title))
  if (description) section('Description', printable(description).trim().split('\n'))
  const params = properties(inputSchema)
  const argumentLines = table<(typeof params)[number]>(
    [
      { title: 'NAME', value: ({ name }) => name },
      { title: 'TYPE', value: ({ type }) => type },
      { title: 'REQUIRED', value: ({ required }) => (required ? 'yes' : '') },
      { title: 'DESCRIPTION', value: ({ description }) => description },
    ],
    params,
    { width: width - 2, heading: (title) => paint('dim', title) },
  )
  if (params.length > 0) section('Arguments', argumentLines)
  if (inputSchema) section('Input schema', json(inputSchema))
  if (outputSchema) section('Output schema', json(outputSchema))
  if (annotations) section('Annotations', json(annotations))
  const example = params.filter(({ required }) => required).map(({ name: key }) => `${oneLine(key)}=…`)
  section('Call', [[command, 'call', `${entry.server}.${oneLine(seenName(entry))}`, ...example].join(' ')])
}

/** Which fields of the server's definition the operator has changed, and the setting. */
function overrideText(entry: Entry): string {
  const { server, name, definition, verbatim = definition, override } = entry
  const seen = { ...definition, name: seenName(entry), _meta: verbatim._meta }
  const fields = [...changedFields({ ...verbatim, name }, seen), ...(override?.hidden ? ['hidden'] : [])]
  return `changed by ${overridePath(server, name)}: ${fields.join(', ')}`
}

/** Shows how much context the tools use, in each exposure mode, by server and by tool (B8). */
export async function showCost(shell: Shell, options: OptionsOf<'tools cost'>): Promise<void> {
  const output = createOutput(shell, options.json)
  await using gateway = await openForCommand(shell, options)
  const caller = gateway.localAs(options.agent)
  const view = gateway.view(caller)
  await waitForTools(view, shell, options.wait)
  if (options.server !== undefined && options.server !== metaSource) requireServer(view, options.server)
  const cost = costFor(caller.agent, view, options)
  if (options.json) output.value(cost)
  else printCosts(cost, output)
}

function costFor(agent: string, view: CommandView, { server, top }: OptionsOf<'tools cost'>) {
  const wanted = (tools: readonly Served[]) =>
    server === undefined ? tools : tools.filter(({ entry }) => entry.server === server)
  const inMode = (mode: Exposure) => {
    const tools = wanted(view.shown(mode))
    return { tools: tools.length, tokens: tokenCost(tools) }
  }
  const modes = { direct: inMode('direct'), meta: inMode('meta'), both: inMode('both'), code: inMode('code') }
  // Find the configured mode by comparing lists: a view returns the same list object for the same mode.
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

function printCosts(cost: ReturnType<typeof costFor>, output: Output): void {
  const { agent, expose, modes, saved, servers, tools } = cost
  const tokens = { title: 'TOKENS', value: (row: { tokens: number }) => String(row.tokens), whole: true }
  const savedText = saved === 0 ? '' : `, which keeps ${saved} out of the context`
  const rows = exposures.map((mode) => ({ mode, ...modes[mode] }))
  output.table<(typeof rows)[number]>(rows, [
    { title: 'MODE', value: ({ mode }) => mode, whole: true },
    { title: 'TOOLS', value: ({ tools }) => String(tools), whole: true },
    tokens,
    { title: '', value: ({ mode }) => (mode === expose ? `used by ${agent}${savedText}` : '') },
  ])
  if (tools.length === 0) return
  output.print('')
  output.table<(typeof servers)[number]>(servers, [
    { title: 'SERVER', value: ({ server }) => server, whole: true },
    { title: 'TOOLS', value: ({ tools }) => String(tools), whole: true },
    tokens,
  ])
  output.print('')
  output.table<(typeof tools)[number]>(tools, [
    { title: 'TOOL', value: ({ name }) => name, whole: true },
    { title: 'SERVER', value: ({ server }) => server },
    tokens,
  ])
}
