import { type LoadedConfig, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Log } from '../core/log.ts'
import { createLog } from '../telemetry/log.ts'
import type { CommonOptions } from './command-table.ts'
import type { Shell } from './kit.ts'

/** Loads the configuration from the named files, or from the default locations. */
export const load = ({ env, cwd }: Shell, { config }: CommonOptions, whileRunning = false): Promise<LoadedConfig> =>
  loadConfig({ paths: config, env, cwd, whileRunning })

export const adjusted = (loaded: LoadedConfig, change: (config: Config) => Config): LoadedConfig => ({
  ...loaded,
  config: change(loaded.config),
})

export function openLog({ stderr, secretsKnown }: Shell, level: string): Log {
  const log = createLog({ level, destination: stderr, pretty: stderr.isTTY === true })
  return {
    ...log,
    conceal(conceal) {
      log.conceal?.(conceal)
      secretsKnown?.(conceal)
    },
  }
}
