import type { Served } from '../../core/access.ts'
import { type ExitCode, exit } from '../exit.ts'
import type { CommonOptions } from '../load.ts'
import { openBriefly } from '../open.ts'
import { createOutput, type Output } from '../output.ts'
import { properties } from '../schema.ts'
import { type Shell, spelling } from '../shell.ts'
import { table } from '../table.ts'
import { oneLine, printable } from '../width.ts'

export interface ShowOptions extends CommonOptions {
  readonly wait: number
  readonly agent?: string
}

/** Shows one tool with its whole definition. */
export async function showTool(shell: Shell, name: string, options: ShowOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  await using gateway = await openBriefly(shell, options)
  const caller = gateway.localAs(options.agent)
  const wait = { signal: shell.interrupted, timeoutMs: options.wait }
  const served = await gateway.view(caller).resolve('tool', name, wait)
  if (options.json) output.value(served.definition)
  else print(served, output, spelling(shell.env))
  return exit.ok
}

function print({ name, entry, definition }: Served, { print, paint, width }: Output, command: string): void {
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
