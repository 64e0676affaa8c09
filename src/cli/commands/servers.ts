import { systemClock } from '../../core/clock.ts'
import { deadline, endWith } from '../../core/deadline.ts'
import { type Health, isSilent, type ServerSummary, type SourceStatus } from '../../core/source-status.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, createProgress, type Output, type Shell } from '../kit.ts'
import { openForCommand } from '../open.ts'
import type { CommandGateway } from '../running-gateway.ts'

/** Connects to every server and shows its state. */
export async function servers(shell: Shell, options: OptionsOf<'servers'>): Promise<void> {
  const output = createOutput(shell, options.json)
  await using gateway = await openForCommand(shell, { ...options, wait: options.timeout })
  await refreshAll(gateway, options.timeout, shell)
  const summaries = gateway.servers()
  if (options.json) output.value({ servers: summaries.map(asJson) })
  else print(summaries, output, `no response within ${options.timeout / 1000} s (--timeout). ${longer(shell)}`)
}

/** Advice for servers that did not respond: the first start with `npx`, `uvx` or `docker` may take minutes. */
const longer = ({ command }: Shell): string =>
  `The first start may have to download the program: \`${command} servers --timeout 5m\` waits longer. ` +
  `Otherwise, \`${command} doctor\` shows the server's output.`

/** Waits until every server has responded or failed, or the time is up. */
async function refreshAll(gateway: CommandGateway, timeoutMs: number, shell: Shell): Promise<void> {
  using progress = createProgress(shell)
  using limit = deadline(systemClock, timeoutMs, () => new Error('no time left'), shell.interrupted)
  const show = () => progress.show(`Waiting for ${waiting(gateway).join(', ') || 'tool lists'} …`)
  using _ = gateway.onChange(show)
  show()
  await endWith(limit.signal, gateway.refresh()).catch(() => shell.interrupted.throwIfAborted())
}

const waiting = (gateway: CommandGateway) =>
  gateway
    .servers()
    .filter(({ status }) => isSilent(status.health))
    .map(({ name }) => name)

const asJson = ({ name, tools, status: { health, since, findings = [], ...status } }: ServerSummary) => ({
  name,
  status: health,
  tools,
  since: new Date(since).toISOString(),
  ...status,
  findings,
})

const colours: Record<Health, 'green' | 'yellow' | 'red' | 'dim'> = {
  healthy: 'green',
  degraded: 'yellow',
  unhealthy: 'red',
  'needs-auth': 'red',
  starting: 'yellow',
  stale: 'yellow',
  disabled: 'dim',
}

function print(summaries: readonly ServerSummary[], output: Output, silence: string): void {
  const { print, paint } = output
  const problem = ({ health, reason }: SourceStatus) => {
    if (health === 'disabled') return ''
    return isSilent(health) ? silence : reason
  }
  output.table<ServerSummary>(summaries, [
    { title: 'NAME', value: ({ name }) => name, whole: true },
    {
      title: 'STATUS',
      value: ({ status }) => status.health,
      style: (cell, { status }) => paint(colours[status.health], cell),
    },
    { title: 'TRANSPORT', value: ({ status }) => status.transport },
    { title: 'PROTOCOL', value: ({ status }) => status.protocolVersion ?? '' },
    { title: 'TOOLS', value: ({ tools }) => String(tools) },
    { title: 'ABOUT', value: ({ status }) => status.description },
  ])
  // Problems are printed below the table because they must not be truncated.
  for (const { name, status } of summaries) {
    const text = problem(status)
    if (text !== '') print(`\n${paint(colours[status.health], name)}: ${text}`)
    for (const { kind, message } of status.findings ?? []) print(`\n${paint('yellow', name)}: ${message} [${kind}]`)
  }
}
