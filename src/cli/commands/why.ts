import { isDeepStrictEqual } from 'node:util'
import { endWith } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Why } from '../../policy/explanation.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, type ExitCode, exit, type Output, type Shell } from '../kit.ts'
import { openForCommand } from '../open.ts'
import type { CommandGateway } from '../running-gateway.ts'
import { oneLine } from '../table.ts'

/** Shows whether an agent may use a tool, which rule decides, and every rule that was considered. */
export async function why(shell: Shell, agent: string, tool: string, options: OptionsOf<'why'>): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  await using gateway = await openForCommand(shell, options)
  const authenticated = await endWith(shell.interrupted, gateway.why(agent, tool))
  const open = gateway.token === undefined
  const anonymous = open || options.anonymous ? await withoutCredential(gateway, authenticated, tool) : undefined
  const found = (options.anonymous && anonymous) || authenticated
  if (options.json) {
    const { agent, server, tool, served, decision, considered } = found
    const beside = open && !options.anonymous ? anonymous?.decision : undefined
    const authenticated = !options.anonymous
    output.value({ agent, server, tool, served, ...decision, considered, authenticated, anonymous: beside })
  } else {
    print(found, options.anonymous ? ', without a credential,' : '', output)
    if (anonymous) output.print(`\n${aboutAnonymous(open, authenticated, anonymous)}`)
  }
  return found.decision.allowed ? exit.ok : exit.refused
}

/** The decision for a caller without a credential. Such a caller might not be allowed to act as this agent. */
async function withoutCredential(gateway: CommandGateway, known: Why, tool: string): Promise<Why> {
  try {
    return await gateway.why(known.agent, tool, { authenticated: false })
  } catch (thrown) {
    if (!(thrown instanceof ToolwayError) || thrown.code !== 'INVALID_AGENT_ID') throw thrown
    const rule = 'auth.token'
    const reason = `Callers without a credential act as the default agent and may not act as ${known.agent}.`
    const decision = { allowed: false, code: thrown.code, rule, reason } as const
    return { ...known, decision, rule, considered: [{ step: 'agent', rule, outcome: 'denies', note: reason }] }
  }
}

function aboutAnonymous(open: boolean, authenticated: Why, { decision }: Why): string {
  if (!open) return 'Anonymous callers are not admitted: requests without a credential are rejected (auth.token).'
  const who = 'Callers without a credential are admitted as anonymous (auth.token: none)'
  if (isDeepStrictEqual(decision, authenticated.decision)) return `${who}; the same applies to them.`
  return `${who} and ${decision.allowed ? 'may use it' : 'may not use it'}: ${decision.rule}`
}

const colours = { allows: 'green', denies: 'red', passes: 'dim' } as const

function print({ agent, server, tool, served, decision, considered }: Why, who: string, output: Output): void {
  const { print, paint } = output
  const verdict = decision.allowed ? paint('green', 'may use') : paint('red', 'may not use')
  print(
    `${agent}${who} ${verdict} ${server}.${oneLine(tool)}${served ? `, which callers see as ${oneLine(served)}` : ''}`,
  )
  print(`rule: ${paint('bold', decision.rule)}`)
  if (!decision.allowed) print(`${decision.code}: ${oneLine(decision.reason)}`)
  print('')
  output.table<(typeof considered)[number]>(considered, [
    { title: 'STEP', value: ({ step }) => step },
    { title: 'RULE', value: ({ rule }) => rule, whole: true },
    {
      title: 'OUTCOME',
      value: ({ outcome }) => outcome,
      style: (cell, { outcome }) => paint(colours[outcome], cell),
    },
    { title: 'NOTE', value: ({ note }) => note },
  ])
}
