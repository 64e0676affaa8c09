import type { LoadedConfig } from '../config/load.ts'
import type { Log } from '../core/log.ts'
import { createLog } from '../telemetry/log.ts'
import type { Shell } from './shell.ts'

/** The log of a command that serves for long: as much as the configuration says, or the command line. */
export const openLog = ({ stderr }: Shell, { config }: LoadedConfig, level: string = config.telemetry.log): Log =>
  createLog({ level, destination: stderr, pretty: stderr.isTTY === true })
