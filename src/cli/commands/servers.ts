import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../../config/schema.ts'
import type { ServerSummary, View } from '../../core/access.ts'
import { waitFor } from '../../core/deadline.ts'
import type { Health, SourceStatus } from '../../core/source.ts'
import { type ExitCode, exit } from '../exit.ts'
import type { CommonOptions } from '../load.ts'
import { openBriefly } from '../open.ts'
import { createOutput, type Output } from '../output.ts'
import { createProgress } from '../progress.ts'
import type { Shell } from '../shell.ts'
import { table } from '../table.ts'

export interface ServersOptions extends CommonOptions {
  readonly timeout: number
}

/** Connects to every server and shows how it is. */
export async function servers(shell: Shell, options: ServersOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  await using gateway = await openBriefly(shell, { ...options, wait: options.timeout }, connectingAtOnce)
  const view = gateway.view(gateway.local)
  await settled(view, options.timeout, shell)
  const summaries = view.servers()
  if (options.json) output.value({ servers: summaries.map(asJson) })
  else print(summaries, output, `no answer within ${options.timeout / 1000} s`)
  return exit.ok
}

const connectingAtOnce = (config: Config): Config => ({
  ...config,
  mcpServers: Object.fromEntries(
    Object.entries(config.mcpServers).map(([name, server]) => [name, { ...server, connect: 'eager' as const }]),
  ),
})

/** Until every server has answered or failed, or there is no time left. */
async function settled(view: View, timeoutMs: number, shell: Shell): Promise<void> {
  using progress = createProgress(shell)
  const until = performance.now() + timeoutMs
  const open = () => view.servers().filter(({ status }) => status.health === 'stale')
  progress.show('Connecting …')
  let unknown = true
  void view.ready().then(() => {
    unknown = false
  })
  while ((unknown || open().length > 0) && performance.now() < until) {
    progress.show(
      `Waiting for ${
        open()
          .map(({ name }) => name)
          .join(', ') || 'lists of tools'
      } …`,
    )
    await waitFor(pause(25), shell.interrupted)
  }
}

const asJson = ({ name, tools, status: { health, since, ...status } }: ServerSummary) => ({
  name,
  status: health,
  tools,
  since: new Date(since).toISOString(),
  ...status,
})

const colours: Record<Health, 'green' | 'yellow' | 'red' | 'dim'> = {
  healthy: 'green',
  degraded: 'yellow',
  unhealthy: 'red',
  stale: 'yellow',
  disabled: 'dim',
}

function print(summaries: readonly ServerSummary[], { print, paint, width }: Output, silence: string): void {
  const about = ({ health, description, reason }: SourceStatus) => {
    if (health === 'healthy') return description
    return health === 'stale' ? `${silence}; ${reason}` : reason
  }
  const lines = table<ServerSummary>(
    [
      { title: 'NAME', value: ({ name }) => name },
      {
        title: 'STATUS',
        value: ({ status }) => status.health,
        style: (cell, { status }) => paint(colours[status.health], cell),
      },
      { title: 'TRANSPORT', value: ({ status }) => status.transport },
      { title: 'PROTOCOL', value: ({ status }) => status.protocolVersion ?? '' },
      { title: 'TOOLS', value: ({ tools }) => String(tools) },
      { title: 'ABOUT', value: ({ status }) => about(status) },
    ],
    summaries,
    { width, heading: (title) => paint('dim', title) },
  )
  for (const line of lines) print(line)
}
