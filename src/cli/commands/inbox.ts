import { visible } from '../../catalog/scan/escape-invisible.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { createOutput, type ExitCode, exit, type Output, type Shell } from '../kit.ts'
import {
  findRunningGateway,
  NoGateway,
  poll,
  type RunningGateway,
  type RunningGatewayOptions,
} from '../running-gateway.ts'

interface InboxOptions extends RunningGatewayOptions {
  readonly follow?: boolean
}

/** The members of the inbox of the admin API that are shown here. */
interface ListedInbox {
  readonly items: readonly ListedItem[]
  readonly dismissed: number
  readonly left: number
}

interface ListedItem {
  readonly id: string
  readonly severity: keyof typeof colours
  readonly title: string
  readonly detail: string
  readonly since: number
  readonly until?: number
  readonly actions: readonly { readonly name: string; readonly path: string; readonly body?: object }[]
}

const pollMs = 2_000

/** Shows what needs a person, as the running gateway reports it (V7). */
export async function inbox(shell: Shell, options: InboxOptions, clock: Clock = systemClock): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const gateway = await findRunningGateway(shell, options)
  if (options.follow) return follow(gateway, shell, output, clock)
  const view = await fetchInbox(gateway, shell.interrupted)
  if (options.json) output.value(view)
  else print(view, output)
  return exit.ok
}

async function fetchInbox(gateway: RunningGateway, signal: AbortSignal): Promise<ListedInbox> {
  const view = await gateway.get<ListedInbox>('inbox', signal)
  if (Array.isArray(view?.items)) return view
  throw new NoGateway(`${gateway.url} responded, but not with an inbox.`)
}

/** Prints each item once, and again when it changes, until interrupted. With --json, one line per item. */
async function follow(gateway: RunningGateway, shell: Shell, output: Output, clock: Clock): Promise<ExitCode> {
  let known = new Map<string, string>()
  const fetch = () => fetchInbox(gateway, shell.interrupted)
  for await (const { items } of poll(fetch, pollMs, { shell, output, clock })) {
    for (const item of items.toReversed()) {
      if (known.get(item.id) === textOf(item)) continue
      if (output.json) shell.stdout.write(`${JSON.stringify(item)}\n`)
      else printItem(item, output)
    }
    known = new Map(items.map((item) => [item.id, textOf(item)]))
  }
  return exit.ok
}

/** Without numbers: a count that grows, such as that of refused requests, does not print an item again. */
const textOf = ({ severity, title, detail }: ListedItem): string =>
  JSON.stringify([severity, title, detail]).replaceAll(/\d+/g, '#')

function print({ items, dismissed, left }: ListedInbox, output: Output): void {
  if (items.length === 0) output.note('Nothing needs attention.')
  for (const item of items) printItem(item, output)
  if (left > 0) output.note(`${left} more items are not shown.`)
  if (dismissed > 0) output.note(`Dismissed until they change: ${dismissed}.`)
}

const colours = { critical: 'red', warning: 'yellow', info: 'dim' } as const

function printItem({ severity, title, detail, since, until, actions }: ListedItem, { print, paint }: Output): void {
  const at = new Date(since).toISOString()
  print(`${paint(colours[severity], severity.padEnd(8))}  ${visible(title)}  ${paint('dim', at)}`)
  if (until !== undefined) print(`          Ends at ${new Date(until).toISOString()}.`)
  if (detail !== '') print(`          ${visible(detail)}`)
  for (const { name, path, body } of actions) {
    const content = body === undefined ? '' : ` ${JSON.stringify(body)}`
    print(paint('dim', `          ${name}: POST /admin/api/${visible(`${path}${content}`)}`))
  }
}
