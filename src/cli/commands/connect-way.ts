import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Way } from '../../clients/entry.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { moduleFile } from '../../runtime/package-paths.ts'
import { keptToken } from '../../stores/token.ts'
import type { Output } from '../output.ts'
import { UsageError } from '../usage.ts'

export interface WayOptions {
  readonly http?: boolean
  readonly agent?: string
  readonly withToken?: boolean
  readonly dryRun?: boolean
}

/** The variable from which clients take the token. */
const tokenVariable = 'TOOLWAY_TOKEN'

/** The program that is running now, as a file: `toolway` may not be in the path that a client has. */
const main = fileURLToPath(moduleFile('cli/main'))

/** How a client is to reach us with this configuration. */
export async function wayTo(loaded: LoadedConfig, options: WayOptions): Promise<Way> {
  return options.http ? http(loaded, options) : stdio(loaded, options)
}

/** Absolute throughout: nobody knows in which folder, and with which path, a client starts programs. */
function stdio({ files }: LoadedConfig, { agent }: WayOptions): Way {
  if (files.length === 0) {
    throw new UsageError(
      'There is no configuration for the client to start Toolway with.',
      '`toolway init` writes one; --config names another.',
    )
  }
  const named = files.flatMap(({ path }) => ['--config', path])
  const acting = agent === undefined ? [] : ['--agent', agent]
  return { kind: 'stdio', command: process.execPath, args: [main, 'stdio', ...named, ...acting] }
}

async function http({ config }: LoadedConfig, { agent, withToken, dryRun }: WayOptions): Promise<Way> {
  const { host, port, path } = config.server
  if (port === 0)
    throw new UsageError('server.port is 0, so the address changes with every start.', 'Give it a number.')
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  const url = `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}${path}`
  const headers: Record<string, string> = agent === undefined ? {} : { 'Toolway-Agent': agent }
  const { token } = config.auth
  if (token === 'none') return { kind: 'http', url, headers }
  // A token of the user's own stands in the configuration: there is no file of ours that a client could read.
  const file = token === 'generated' ? join(config.stores.common, 'token') : undefined
  // Made now, so that whoever is told to read the file finds it; not for a mere look.
  const kept = file !== undefined && (withToken || !dryRun) ? await keptToken(config.stores.common) : token
  return {
    kind: 'http',
    url,
    headers,
    token: { variable: tokenVariable, ...(file !== undefined && { file }), ...(withToken && { literal: kept }) },
  }
}

/** What has to be done so that the client finds the token. */
export function noteToken(entry: object, way: Way, { note }: Output): void {
  if (way.kind !== 'http' || !way.token || way.token.literal !== undefined) return
  if (!JSON.stringify(entry).includes(tokenVariable)) return
  note(`The client takes the token from the variable ${tokenVariable}; set it where the client is started:`)
  note(
    way.token.file === undefined
      ? `  export ${tokenVariable}=…`
      : `  export ${tokenVariable}="$(cat ${way.token.file})"`,
  )
}
