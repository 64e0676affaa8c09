import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { labelledLog } from '../core/log.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../runtime/gateway.ts'
import type { Shell } from './kit.ts'
import { adjusted, type CommonOptions, load, openLog } from './load.ts'

/** Opens a gateway that logs as configured. */
const openGateway = (
  shell: Shell,
  loaded: LoadedConfig,
  { log }: CommonOptions,
  more: Pick<GatewayOptions, 'load' | 'watch' | 'print' | 'shared'> = {},
): Promise<Gateway> => {
  const lines = openLog(shell, loaded, log)
  return createGateway(loaded, {
    ...more,
    log: more.shared ? labelledLog(lines, { worker: more.shared.number }) : lines,
  })
}

interface Watching extends Pick<GatewayOptions, 'print' | 'shared'> {
  /** Applies command-line options to each configuration that is loaded. */
  change?(config: Config): Config
}

/** Opens a gateway that reloads when its configuration files change. */
export async function openWatching(
  shell: Shell,
  options: CommonOptions & { readonly watch?: boolean },
  { change = (config: Config) => config, ...more }: Watching = {},
): Promise<Gateway> {
  const read = async (whileRunning: boolean) => adjusted(await load(shell, options, whileRunning), change)
  const reloading = { load: () => read(true), watch: options.watch !== false }
  return openGateway(shell, await read(false), options, { ...reloading, ...more })
}

/** Opens a gateway for one command: it waits longer for servers than a client would, and logs only errors. */
export async function openBriefly(shell: Shell, options: CommonOptions & { readonly wait: number }): Promise<Gateway> {
  const patient = adjusted(await load(shell, options), (config) => ({
    ...config,
    discovery: { ...config.discovery, listDeadline: options.wait },
  }))
  return openGateway(shell, patient, { ...options, log: options.log ?? 'error' })
}
