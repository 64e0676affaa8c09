import { waitFor } from '../../core/deadline.ts'
import type { Why } from '../../gateway.ts'
import { type ExitCode, exit } from '../exit.ts'
import type { CommonOptions } from '../load.ts'
import { openBriefly } from '../open.ts'
import { createOutput, type Output } from '../output.ts'
import type { Shell } from '../shell.ts'
import { table } from '../table.ts'

export interface WhyOptions extends CommonOptions {
  readonly wait: number
}

/** Tells whether an agent may use a tool, which rule decides, and what was considered on the way. */
export async function why(shell: Shell, agent: string, tool: string, options: WhyOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  await using gateway = await openBriefly(shell, options)
  const found = await waitFor(gateway.why(agent, tool), shell.interrupted)
  if (options.json) output.value(asJson(found))
  else print(found, output)
  return found.decision.allowed ? exit.ok : exit.refused
}

const asJson = ({ agent, server, tool, decision, considered }: Why) => ({
  agent,
  server,
  tool,
  ...decision,
  considered,
})

const colours = { allows: 'green', denies: 'red', passes: 'dim' } as const

function print({ agent, server, tool, decision, considered }: Why, { print, paint, width }: Output): void {
  const verdict = decision.allowed ? paint('green', 'may use') : paint('red', 'may not use')
  print(`${agent} ${verdict} ${server}.${tool}`)
  print(`rule: ${paint('bold', decision.rule)}`)
  if (!decision.allowed) print(`${decision.code}: ${decision.reason}`)
  print('')
  const lines = table<(typeof considered)[number]>(
    [
      { title: 'STEP', value: ({ step }) => step },
      { title: 'RULE', value: ({ rule }) => rule, whole: true },
      {
        title: 'OUTCOME',
        value: ({ outcome }) => outcome,
        style: (cell, { outcome }) => paint(colours[outcome], cell),
      },
      { title: 'NOTE', value: ({ note }) => note },
    ],
    considered,
    { width, heading: (title) => paint('dim', title) },
  )
  for (const line of lines) print(line)
}
