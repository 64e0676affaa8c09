import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import type * as z from 'zod'
import type { Environment } from './interpolate.ts'
import { folder } from './locate.ts'
import type { Config, configSchema } from './schema.ts'
import { placeOf, type Tree } from './tree.ts'

type Checked = z.output<typeof configSchema>

interface Surroundings {
  readonly tree: Tree
  readonly paths: readonly string[]
  readonly env: Environment
  readonly home: string
}

/** Fills in the folders that depend on where the configuration was found. */
export function withFolders(config: Checked, { tree, paths, env, home }: Surroundings): Config {
  const state = join(folder(env.XDG_STATE_HOME, join(home, '.local', 'state')), 'toolway')
  const path = config.stores.path ?? join(state, nameOf(paths))
  const common = config.stores.path ?? state
  return {
    ...config,
    mcpServers: withWorkingFolders(config.mcpServers, tree),
    stores: { ...config.stores, path, common },
    audit: { ...config.audit, path: config.audit.path ?? join(path, 'audit') },
  }
}

/** State lives in the user's own folder, apart for each configuration, so that no project is littered. */
const nameOf = (paths: readonly string[]): string =>
  paths.length === 0 ? 'default' : createHash('sha256').update(paths.join('\n')).digest('hex').slice(0, 12)

/** A program starts in the folder of the file that names it, wherever the gateway itself was started. */
function withWorkingFolders(servers: Checked['mcpServers'], tree: Tree): Checked['mcpServers'] {
  const placed = Object.entries(servers).map(([name, server]) => {
    if (server.transport !== 'stdio' || server.cwd !== undefined) return [name, server] as const
    return [name, { ...server, cwd: dirname(placeOf(tree, ['mcpServers', name, 'command']).file.path) }] as const
  })
  return Object.fromEntries(placed)
}
