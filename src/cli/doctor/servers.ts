import type { HttpConfig, ServerConfig } from '../../config/schema.ts'
import { keyPath } from '../../config/tree.ts'
import { matches } from '../../core/wildcard.ts'
import type { ServerProber } from '../../runtime/probe-server.ts'
import { type Check, ok, problem, warning } from './finding.ts'
import { serverFinding } from './server.ts'
import type { Situation } from './situation.ts'

export interface ServerChecks {
  readonly checks: readonly Check[]
  /** The tools of each server that told, once all have been asked. */
  readonly tools: Promise<ReadonlyMap<string, readonly string[]>>
}

export interface ServerCheckOptions {
  readonly situation: Situation
  /** All that are configured, unless one is named. */
  readonly only: string | undefined
  readonly examiner: ServerProber
  readonly withinMs: number
  /** The environment of whoever asks: servers get little of it. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** One check for each server: it is started or called, greeted, asked for its lists, and left again. */
export function serverChecks({ situation, only, examiner, withinMs, env }: ServerCheckOptions): ServerChecks {
  const { understood, unset, loaded } = situation
  const servers = understood?.mcpServers ?? {}
  const names = Object.keys(servers).filter((name) => only === undefined || name === only)
  const known = new Map<string, readonly string[]>()
  const told = Promise.withResolvers<typeof known>()
  let left = names.length
  if (left === 0) told.resolve(known)

  const look = async (name: string, signal: AbortSignal) => {
    const server = servers[name] as ServerConfig
    if (server.disabled) return ok('is disabled, so it was not tried')
    if (loaded && isOurselves(server, loaded.config.server)) {
      return warning('is our own endpoint: Toolway is not behind itself and leaves it out', `remove mcpServers.${name}`)
    }
    const variable = unset.find(({ key }) => within(key, name))?.variable
    if (variable !== undefined) {
      return problem(`was not tried: the variable ${variable} of its configuration is not set`, `export ${variable}=…`)
    }
    const examination = await examiner.probe(name, server, withinMs, signal)
    if (examination.tools)
      known.set(
        name,
        examination.tools.filter((tool) => isServed(server, tool)),
      )
    return serverFinding({ name, config: server, examination, withinMs, env })
  }

  return {
    tools: told.promise,
    checks: names.map((name) => ({
      name: `server.${name}`,
      run: (signal) =>
        look(name, signal).finally(() => {
          if (--left === 0) told.resolve(known)
        }),
    })),
  }
}

const isServed = ({ tools: { include, exclude } }: ServerConfig, tool: string): boolean =>
  include.some((pattern) => matches(pattern, tool)) && !exclude.some((pattern) => matches(pattern, tool))

/** Whether a problem is about a server. */
function within(key: string, server: string): boolean {
  const start = keyPath(['mcpServers', server])
  return key === start || key.startsWith(`${start}.`) || key.startsWith(`${start}[`)
}

/** Loopback by any of its names, on our own port and path. */
function isOurselves(server: ServerConfig, { port, path }: HttpConfig): boolean {
  if (server.transport === 'stdio' || port === 0) return false
  const { hostname, port: theirs, pathname } = new URL(server.url)
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return loopback && Number(theirs) === port && [path, `${path}/stream`].includes(pathname)
}
