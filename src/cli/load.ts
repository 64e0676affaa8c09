import { type LoadedConfig, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Log } from '../core/log.ts'
import { createLog } from '../telemetry/log.ts'
import type { Shell } from './kit.ts'

/** The options that every command takes. */
export interface CommonOptions {
  readonly config?: readonly string[]
  readonly json?: boolean
  readonly log?: string
}

/** Reads the files that the user named, or those that are found. */
export const load = ({ env, cwd }: Shell, { config }: CommonOptions, whileRunning = false): Promise<LoadedConfig> =>
  loadConfig({ ...(config && { paths: config }), env, cwd, whileRunning })

/** The same configuration with something changed by the command line. */
export const adjusted = (loaded: LoadedConfig, change: (config: Config) => Config): LoadedConfig => ({
  ...loaded,
  config: change(loaded.config),
})

/** The log of a command that serves for long: as much as the configuration says, or the command line. */
export const openLog = ({ stderr }: Shell, { config }: LoadedConfig, level: string = config.telemetry.log): Log =>
  createLog({ level, destination: stderr, pretty: stderr.isTTY === true })
