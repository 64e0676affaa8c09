import type { InboxItem, InboxView } from '../../admin/contract.ts'
import { visible } from '../../catalog/scan/finding.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { shellQuote } from '../../lib/message-text.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, type Output, type Shell } from '../kit.ts'
import { findRunningGateway, pollNew, type RunningGateway } from '../running-gateway.ts'

/** What an item is printed with: the command as the user calls it, and the gateway's address. */
interface PrintContext extends Output {
  readonly command: string
  readonly url: string
}

const pollMs = 2_000

/** Shows what needs a person, as the running gateway reports it (V7). */
export async function inbox(shell: Shell, options: OptionsOf<'inbox'>, clock: Clock = systemClock): Promise<void> {
  const output = createOutput(shell, options.json)
  const gateway = await findRunningGateway(shell, options)
  const context = { ...output, command: shell.command, url: gateway.url }
  if (options.follow) return follow(gateway, shell, context, clock)
  const view = await gateway.get<InboxView>('inbox')
  if (options.json) output.value(view)
  else print(view, context)
}

/** Prints each item once, and again when it changes, until interrupted. With --json, one line per item. */
async function follow(gateway: RunningGateway, shell: Shell, context: PrintContext, clock: Clock): Promise<void> {
  const fetch = async () => (await gateway.get<InboxView>('inbox')).items.toReversed()
  for await (const item of pollNew(fetch, identify, pollMs, { shell, output: context, clock })) {
    if (context.json) shell.stdout.write(`${JSON.stringify(item)}\n`)
    else printItem(item, context)
  }
}

/** Without numbers: a count that grows, such as that of refused requests, does not print an item again. */
const identify = ({ id, severity, title, detail }: InboxItem): string =>
  id + JSON.stringify([severity, title, detail]).replaceAll(/\d+/g, '#')

function print({ items, dismissed, left }: InboxView, context: PrintContext): void {
  const { note } = context
  if (items.length === 0) note('Nothing needs attention.')
  for (const item of items) printItem(item, context)
  if (left > 0) note(`${left} more items are not shown.`)
  if (dismissed > 0) note(`Dismissed until they change: ${dismissed}.`)
}

/** The commands that deal with an item of each kind, or show its cause. Some kinds have a subject. */
const commands: Readonly<Record<string, readonly string[]>> = {
  approval: ['approvals allow ID', 'approvals allow ID --session', 'approvals deny ID --reason WHY'],
  definition: ['pins show ID', 'pins approve ID'],
  server: ['doctor --server ID'],
  'sign-in': ['auth ID'],
  audit: ['audit verify', 'doctor'],
  rejected: ['audit query --decision deny --since 1h'],
  reload: ['validate'],
  key: ['keys rotate ID', 'keys revoke ID'],
  store: ['doctor'],
}

const colours = { critical: 'red', warning: 'yellow', info: 'dim' } as const

/** Prints an item with the commands for it, and its page in the dashboard, which has the other actions. */
function printItem({ id, kind, severity, title, detail, since, until, link }: InboxItem, context: PrintContext): void {
  const { print, paint, command, url } = context
  const at = new Date(since).toISOString()
  print(`${paint(colours[severity], severity.padEnd(8))}  ${visible(title)}  ${paint('dim', at)}`)
  if (until !== undefined) print(`          Ends at ${new Date(until).toISOString()}.`)
  if (detail !== '') print(`          ${visible(detail)}`)
  const subject = visible(shellQuote(id.slice(id.indexOf(':') + 1)))
  const ways = id === 'key-file' ? commands.store : commands[kind]
  for (const way of ways ?? []) print(paint('dim', `          ${command} ${way.replace('ID', () => subject)}`))
  if (link) print(paint('dim', `          ${visible(url + link)}`))
}
