import type { Served, View } from '../../core/access.ts'
import { waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { schemaProblem } from '../../policy/arguments/validate.ts'
import { type ExitCode, exit } from '../exit.ts'
import type { CommonOptions } from '../load.ts'
import { openBriefly } from '../open.ts'
import { createOutput, type Output } from '../output.ts'
import { createProgress } from '../progress.ts'
import type { Shell } from '../shell.ts'
import { table } from '../table.ts'
import { firstSentence } from '../width.ts'

export interface ToolsOptions extends CommonOptions {
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
  else print(tools, output)
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

function print(tools: readonly Served[], { print, paint, width }: Output): void {
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
