import type { LoadedConfig } from '../config/load.ts'
import { createGateway, type Gateway } from '../gateway.ts'
import { createLog } from '../telemetry/log.ts'
import { adjusted, type CommonOptions, load } from './load.ts'
import type { Shell } from './shell.ts'

/** A gateway that serves for long: it logs as the configuration says. */
export const openGateway = (shell: Shell, loaded: LoadedConfig, { log }: CommonOptions): Promise<Gateway> =>
  createGateway(loaded, {
    log: createLog({
      level: log ?? loaded.config.telemetry.log,
      destination: shell.stderr,
      pretty: shell.stderr.isTTY === true,
    }),
  })

/** A gateway for one command: it waits longer for servers than a client would, and its log stays out of the answer. */
export async function openBriefly(shell: Shell, options: CommonOptions & { readonly wait: number }): Promise<Gateway> {
  const patient = adjusted(await load(shell, options), (config) => ({
    ...config,
    discovery: { ...config.discovery, listDeadline: options.wait },
  }))
  return openGateway(shell, patient, { ...options, log: options.log ?? 'error' })
}
