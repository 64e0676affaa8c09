import { createHash } from 'node:crypto'
import type { ServerConfig } from '../config/schema.ts'

/** Changes when a server may have become another one, so that what is remembered of the old one is not shown for it. */
export function fingerprintOf(config: ServerConfig): string {
  // Values of the environment are secrets more often than not; that they are set is enough to tell servers apart.
  const identity =
    config.transport === 'stdio'
      ? [config.command, config.args, config.cwd, Object.keys(config.env).sort()]
      : [config.transport, config.url]
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16)
}
