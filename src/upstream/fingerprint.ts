import { createHash } from 'node:crypto'
import type { ServerConfig } from '../config/schema.ts'

/** Changes when a server may have become another one, so that what is remembered of the old one is not shown for it. */
export function fingerprintOf(config: ServerConfig): string {
  const { command, args, cwd, url, env } = config
  // Values of the environment are secrets more often than not; that they are set is enough to tell servers apart.
  const identity = JSON.stringify([command, args, cwd, url, Object.keys(env ?? {}).sort()])
  return createHash('sha256').update(identity).digest('hex').slice(0, 16)
}
