import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { labelledLog } from '../core/log.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../runtime/gateway.ts'
import type { Shell } from './kit.ts'
import { adjusted, type CommonOptions, load, openLog } from './load.ts'

/** A gateway that serves for long: it logs as the configuration says. */
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
  /** What the command line changes about every configuration that is read. */
  change?(config: Config): Config
}

/** A gateway that serves for long, and takes over what changes in the files of its configuration. */
export async function openWatching(
  shell: Shell,
  options: CommonOptions & { readonly watch?: boolean },
  { change = (config: Config) => config, ...more }: Watching = {},
): Promise<Gateway> {
  const read = async (whileRunning: boolean) => adjusted(await load(shell, options, whileRunning), change)
  const reloading = { load: () => read(true), watch: options.watch !== false }
  return openGateway(shell, await read(false), options, { ...reloading, ...more })
}

/** A gateway for one command: it waits longer for servers than a client would, and its log stays out of the answer. */
export async function openBriefly(shell: Shell, options: CommonOptions & { readonly wait: number }): Promise<Gateway> {
  const patient = adjusted(await load(shell, options), (config) => ({
    ...config,
    discovery: { ...config.discovery, listDeadline: options.wait },
  }))
  return openGateway(shell, patient, { ...options, log: options.log ?? 'error' })
}
