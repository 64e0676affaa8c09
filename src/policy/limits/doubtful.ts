import type { LimitsConfig } from '../../config/schema.ts'
import { nearMiss } from '../../core/near.ts'
import { knownServers } from '../warnings.ts'

export interface DoubtfulLimits {
  readonly limits: Pick<LimitsConfig, 'servers' | 'tools'>
  /** The configured servers, disabled ones too; `native`, `toolway` and `sink` need not be named. */
  readonly servers: readonly string[]
  /** The tools that are known by now: of a server without any, nothing is said about its tools. */
  readonly tools?: Iterable<{ readonly server: string; readonly name: string }>
}

/** Limits that are valid but hardly meant: on servers and tools that do not exist, or that no call can meet. */
export function doubtfulLimits({ limits, servers: configured, tools = [] }: DoubtfulLimits): string[] {
  const servers = knownServers(configured)
  const toolsOf = Map.groupBy(tools, ({ server }) => server)
  return [
    ...Object.keys(limits.servers).flatMap((name) => doubtfulServer(name, servers)),
    ...Object.keys(limits.tools).flatMap((pattern) => doubtfulTool(pattern, servers, toolsOf)),
  ]
}

function doubtfulServer(name: string, servers: ReadonlySet<string>): string[] {
  if (servers.has(name)) return []
  const key = `limits.servers.${name}`
  if (name.includes('*')) return [`${key}: servers are named here, not matched; use limits.tools for patterns`]
  return [`${key}: there is no server ${name}${meant(name, servers)}`]
}

type Tools = ReadonlyMap<string, readonly { readonly server: string; readonly name: string }[]>

function doubtfulTool(pattern: string, servers: ReadonlySet<string>, toolsOf: Tools): string[] {
  const key = `limits.tools.${pattern}`
  const plain = pattern.split('*', 1)[0] as string
  const isName = plain === pattern
  if (isName && !plain.includes('.')) return [`${key} limits nothing; write it as server.tool`]
  // A server may have a dot in its name, so `a.b.c` can be a tool of `a` and one of `a.b`.
  const possible = [...servers].filter((server) => {
    const start = `${server}.`
    return plain.startsWith(start) || (!isName && start.startsWith(plain))
  })
  if (possible.length === 0) {
    const server = plain.split('.', 1)[0] as string
    return [`${key}: there is no server ${server}${meant(server, servers)}`]
  }
  // Whoever writes a pattern may well mean tools that are still to come.
  const known = possible.map((server) => toolsOf.get(server) ?? [])
  if (!isName || known.some((tools) => tools.length === 0)) return []
  const names = known.flat().map(({ server, name }) => `${server}.${name}`)
  return names.includes(pattern) ? [] : [`${key}: there is no tool ${pattern}${meant(pattern, names)}`]
}

function meant(word: string, candidates: Iterable<string>): string {
  const near = nearMiss(word, candidates)
  return near === undefined ? '' : `; did you mean ${near}?`
}
