import type { LoadedConfig } from '../../config/load.ts'
import { ConfigError } from '../../config/problems.ts'
import type { ServerConfig } from '../../config/schema.ts'
import { cachedTools } from '../../config/warnings.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { toolOverrides } from '../../core/tool-overrides.ts'
import { policyWarnings } from '../../policy/policy-warnings.ts'
import { redactorOf } from '../audited.ts'
import type { CommonOptions } from '../command-table.ts'
import { createOutput, type ExitCode, exit, type Output, relativeTo, type Shell } from '../kit.ts'
import { load } from '../load.ts'
import { oneLine, table } from '../table.ts'

/** Checks the configuration and shows how it was understood. */
export async function validate(shell: Shell, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  try {
    const found = await load(shell, options)
    await tryPlugins(found)
    const loaded = { ...found, warnings: await warningsOf(found) }
    if (options.json) output.value(asJson(loaded))
    else print(loaded, output, shell)
    return exit.ok
  } catch (error) {
    if (!options.json || !(error instanceof ConfigError)) throw error
    output.value({ valid: false, problems: error.problems })
    return exit.usage
  }
}

/** Loads the plugins as a gateway would; throws if any plugin fails to load. */
async function tryPlugins(loaded: LoadedConfig): Promise<void> {
  const { plugins } = loaded.config.native
  if (plugins.length === 0) return
  const { probePlugins } = await import('../../runtime/probe-server.ts')
  const problems = await probePlugins(plugins, {
    conceal: redactorOf(loaded, []).line,
    clock: systemClock,
    log: silentLog,
  })
  const found = problems.map((message) => loaded.problemAt(['native', 'plugins'], message))
  if (found.length > 0) throw new ConfigError(found)
}

function serversOf(loaded: LoadedConfig) {
  const conceal = redactorOf(loaded, []).line
  return Object.entries(loaded.config.mcpServers).map(([name, server]) => {
    return { name, transport: server.transport, target: conceal(target(server)), disabled: server.disabled }
  })
}

/** The command or URL of a server, without the parts of a URL that often contain secrets. */
function target(server: ServerConfig): string {
  if (server.transport === 'stdio') return [server.command, ...server.args].join(' ')
  if (!URL.canParse(server.url)) return server.url
  const { origin, pathname } = new URL(server.url)
  return origin + pathname
}

async function warningsOf({ warnings, config }: LoadedConfig): Promise<readonly string[]> {
  const found = [...warnings, ...policyWarnings(config)]
  const needsListing = ({ readOnly, tools }: ServerConfig) => readOnly || toolOverrides(tools).size > 0
  if (!Object.values(config.mcpServers).some(needsListing)) return found
  const { listingWarnings } = await import('../../runtime/probe-server.ts')
  return [...found, ...(await listingWarnings(config))]
}

const asJson = (loaded: LoadedConfig) => ({
  valid: true,
  files: loaded.files,
  servers: serversOf(loaded),
  agents: Object.keys(loaded.config.agents),
  cached: cachedTools(loaded.config),
  notes: loaded.notes,
  warnings: loaded.warnings,
})

function print(loaded: LoadedConfig, { print, section, paint, width }: Output, { command, cwd }: Shell): void {
  const { files, config, notes } = loaded
  const { host, port, path } = config.server
  const found = files.length > 0 ? 'The configuration is valid.' : 'No configuration file was found, so defaults apply.'
  const servers = table<ReturnType<typeof serversOf>[number]>(
    [
      { title: '', value: ({ name }) => name },
      { title: '', value: ({ disabled, transport }) => (disabled ? 'disabled' : transport) },
      { title: '', value: (server) => server.target },
    ],
    serversOf(loaded),
    { width: width - 2 },
  )
  const sections: Readonly<Record<string, readonly string[]>> = {
    Files: notes.map((note) => oneLine(relativeTo(note, cwd))),
    Servers: servers.slice(1),
    Agents: Object.keys(config.agents),
    'Cached results': cachedTools(config),
    Endpoint: [`http://${host}:${port}${path}`],
    Warnings: loaded.warnings.map((warning) => paint('yellow', oneLine(warning))),
    Next: files.length === 0 ? [`${command} init`] : [],
  }
  print(`${paint('green', '✓')} ${found}`)
  for (const [title, lines] of Object.entries(sections)) section(title, lines)
}
