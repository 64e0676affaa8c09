import { claimDefaultState, type LoadedConfig } from '../config/load.ts'
import { locate } from '../config/locate.ts'
import type { Config } from '../config/schema.ts'
import { labelledLog } from '../core/log.ts'
import type { Gateway, GatewayOptions } from '../runtime/gateway-api.ts'
import type { CommonOptions } from './command-table.ts'
import type { Shell } from './kit.ts'
import { adjusted, load, openLog } from './load.ts'
import { type CommandGateway, findForCommand, type OfflineOptions } from './running-gateway.ts'

/** Opens a gateway that reloads when its files change. `change` applies command-line options to each configuration. */
export async function openWatching(
  shell: Shell,
  options: CommonOptions & { readonly watch?: boolean },
  change = (config: Config) => config,
  { print, shared }: Pick<GatewayOptions, 'print' | 'shared'> = {},
): Promise<Gateway> {
  const read = async (whileRunning: boolean) => adjusted(await load(shell, options, whileRunning), change)
  // Like a reload, a restarted worker does not accept an empty file: an editor may be writing it at this moment.
  const first = await read(shared?.identity.restarted ?? false)
  const lines = openLog(shell, options.log ?? first.config.telemetry.log)
  const log = shared ? labelledLog(lines, { worker: shared.identity.number }) : lines
  const source = { paths: options.config ?? [], env: shell.env, cwd: shell.cwd }
  const reload = async () => {
    if (first.files.length === 0) await keepFoundState(shell)
    return read(true)
  }
  // Loaded here, because the primary process, which supervises workers, stays small without the gateway.
  const { openGateway } = await import('../admin/gateway.ts')
  return openGateway(first, { load: reload, watch: options.watch !== false, source, print, shared, log })
}

/** If somebody has created a configuration file, keeps using this state folder after a restart and in commands. */
async function keepFoundState({ env, cwd }: Shell): Promise<void> {
  const { paths } = await locate([], env, cwd)
  if (paths[0] !== undefined) await claimDefaultState(paths[0], env)
}

type WaitOptions = CommonOptions & { readonly wait: number }

/** Opens a gateway for one command: it waits longer for servers than a client would, and logs only errors. */
export async function openBriefly(shell: Shell, options: WaitOptions, loaded?: LoadedConfig): Promise<Gateway> {
  const patient = adjusted(loaded ?? (await load(shell, options)), (config) => ({
    ...config,
    discovery: { ...config.discovery, listDeadline: options.wait },
  }))
  // Loaded here, because commands that ask the running gateway do not need it.
  const { openGateway } = await import('../admin/gateway.ts')
  return openGateway(patient, { log: openLog(shell, options.log ?? 'error') })
}

/** The running gateway, or one that is opened for this command. */
export async function openForCommand(shell: Shell, options: WaitOptions & OfflineOptions): Promise<CommandGateway> {
  const loaded = await load(shell, options)
  return (await findForCommand(shell, loaded.config, options)) ?? openBriefly(shell, options, loaded)
}
