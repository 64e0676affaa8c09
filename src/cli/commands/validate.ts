import { createRedactor } from '../../audit/redact/redactor.ts'
import { secretsOf } from '../../audit/redact/secrets.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { ConfigError } from '../../config/problems.ts'
import type { ServerConfig } from '../../config/schema.ts'
import { secretSettings } from '../../config/schema-lookup.ts'
import { cachedTools } from '../../config/warnings.ts'
import { systemClock } from '../../core/clock.ts'
import { policyDoubts } from '../../policy/config-warnings.ts'
import { commandName, createOutput, type ExitCode, exit, type Output, relativeTo, type Shell } from '../kit.ts'
import { type CommonOptions, load, openLog } from '../load.ts'
import { oneLine, table } from '../table.ts'

/** Checks the configuration and shows how it was understood. */
export async function validate(shell: Shell, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  try {
    const loaded = await load(shell, options)
    await tryPlugins(loaded, shell)
    if (options.json) output.value(asJson(loaded))
    else print(loaded, output, shell)
    return exit.ok
  } catch (error) {
    if (!options.json || !(error instanceof ConfigError)) throw error
    output.value({ valid: false, problems: error.problems })
    return exit.usage
  }
}

/** Loads the plugins as a gateway would, to find out whether they load. */
async function tryPlugins(loaded: LoadedConfig, shell: Shell): Promise<void> {
  const { plugins } = loaded.config.native
  if (plugins.length === 0) return
  const { probePlugins: examinePlugins } = await import('../../runtime/probe-server.ts')
  const problems = await examinePlugins(plugins, { clock: systemClock, log: openLog(shell, loaded, 'silent') })
  const found = problems.map((message) => loaded.problemAt(['native', 'plugins'], message))
  if (found.length > 0) throw new ConfigError(found)
}

interface Understood {
  readonly name: string
  readonly transport: string
  readonly target: string
  readonly disabled: boolean
}

const understood = ({ config, secrets }: LoadedConfig): readonly Understood[] => {
  const { line: conceal } = createRedactor({ secrets: secretsOf(secretSettings(config), secrets), keys: [] })
  return Object.entries(config.mcpServers).map(([name, server]) => {
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

const warningsOf = ({ warnings, config }: LoadedConfig) => [...warnings, ...policyDoubts(config)]

const asJson = (loaded: LoadedConfig) => ({
  valid: true,
  files: loaded.files,
  servers: understood(loaded),
  agents: Object.keys(loaded.config.agents),
  cached: cachedTools(loaded.config),
  notes: loaded.notes,
  warnings: warningsOf(loaded),
})

function print(loaded: LoadedConfig, { print, paint, width }: Output, { cwd, env }: Shell): void {
  const { files, config, notes } = loaded
  const section = (title: string, lines: readonly string[]) => {
    if (lines.length === 0) return
    print('')
    print(paint('bold', title))
    for (const line of lines) print(`  ${line}`)
  }
  const columns = (rows: readonly (readonly string[])[]) =>
    table(
      [0, 1, 2].map((index) => ({ title: '', value: (row: readonly string[]) => row[index] ?? '' })),
      rows,
      { width: width - 2 },
    ).slice(1)

  print(
    `${paint('green', '✓')} ${files.length > 0 ? 'The configuration is valid.' : 'No configuration file was found, so defaults apply.'}`,
  )
  section(
    'Files',
    notes.map((note) => oneLine(relativeTo(note, cwd))),
  )
  section(
    'Servers',
    columns(
      understood(loaded).map((server) => [server.name, server.disabled ? 'disabled' : server.transport, server.target]),
    ),
  )
  section('Agents', Object.keys(config.agents))
  section('Cached results', cachedTools(config))
  section('Endpoint', [`http://${config.server.host}:${config.server.port}${config.server.path}`])
  section(
    'Warnings',
    warningsOf(loaded).map((warning) => paint('yellow', oneLine(warning))),
  )
  if (files.length === 0) section('Next', [`${commandName(env)} init`])
}
