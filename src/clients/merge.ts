import { dirname } from 'node:path'
import { type ClientKind, clientLabels, folderOf } from '../config/import/client-kind.ts'
import { dependsOnFolder } from '../config/import/depends-on-folder.ts'
import { fingerprint } from '../config/import/fingerprint.ts'
import type { Definition, ReadServer } from '../config/import/read-servers.ts'

/** Where a server was found. */
export interface Origin {
  readonly path: string
  readonly client?: ClientKind
  readonly scope: 'user' | 'project'
}

/** A server that was found, on its way into a configuration of ours. */
export interface FoundServer {
  readonly name: string
  readonly definition: Definition
  readonly origin: Origin
}

/** One server of the configuration to be. */
export interface MergedServer {
  readonly name: string
  readonly definition: Definition
  /** Every place that has it, the first one first. */
  readonly origins: readonly Origin[]
}

export interface Merged {
  readonly servers: readonly MergedServer[]
  /** What became of servers that are in several places. */
  readonly notes: readonly string[]
}

/** How people call the place that a server comes from. */
export const called = ({ client, path }: Origin): string => (client ? clientLabels[client] : path)

/** The same server in several places is one; another one under the same name is kept beside it, and both are said. */
export function merge(found: readonly FoundServer[]): Merged {
  const merged = new Map<string, MergedServer>()
  const notes: string[] = []
  for (const { name, definition, origin } of found) {
    const mark = fingerprint(definition)
    const twin = [...merged.values()].find(
      (other) => fingerprint(other.definition) === mark && other.origins.every(({ path }) => path !== origin.path),
    )
    if (twin) {
      if (twin.name !== name) notes.push(`${name} of ${called(origin)} is the same server as ${twin.name}`)
      merged.set(twin.name, joined(twin, definition, origin))
      continue
    }
    const free = freeName(name, origin, (other) => merged.has(other))
    if (free !== name) notes.push(`${called(origin)} has another server ${name}, which is called ${free} here`)
    merged.set(free, { name: free, definition, origins: [origin] })
  }
  return { servers: [...merged.values()], notes }
}

/** In use in one place is in use; whoever has more patience has a reason for it. */
function joined(twin: MergedServer, definition: Definition, origin: Origin): MergedServer {
  const { disabled: _, timeout: __, ...rest } = twin.definition
  const disabled = twin.definition.disabled === true && definition.disabled === true
  const timeout = longer(twin.definition.timeout, definition.timeout)
  return {
    name: twin.name,
    definition: { ...rest, ...(disabled && { disabled }), ...(timeout !== undefined && { timeout }) },
    origins: [...twin.origins, origin],
  }
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

function longer(one: unknown, other: unknown): unknown {
  const length = (time: unknown) => {
    const [, count, unit] = /^([\d.]+)(ms|s|m|h)$/.exec(String(time)) ?? []
    return unit === undefined ? -1 : Number(count) * (units[unit] as number)
  }
  return length(one) >= length(other) ? one : other
}

/** A name that nobody has yet: its own, or else one that says where the server comes from. */
export function freeName(name: string, { client, path }: Origin, taken: (name: string) => boolean): string {
  if (!taken(name)) return name
  const suffix = client ?? (path.replace(/^.*[\\/]|\.\w+$/g, '').replace(/[^\w-]+/g, '-') || 'imported')
  const other = `${name.slice(0, 40)}-${suffix}`
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? other : `${other}-${number}`
    if (!taken(candidate)) return candidate
  }
}

/**
 * A server as it stands in a configuration at `into`. A folder that nobody wrote is carried over only where it may
 * matter: for the servers of a project, and for words that mean something else elsewhere.
 */
export function placed(server: ReadServer, origin: Origin, into: string): FoundServer {
  const { cwd, ...rest } = server.definition
  const { impliedFolder } = server
  const where = impliedFolder ?? cwd
  const matters =
    impliedFolder === undefined ||
    origin.scope === 'project' ||
    impliedFolder !== folderOf(origin.path) ||
    dependsOnFolder(server.definition)
  const kept = where !== undefined && matters && where !== dirname(into)
  return { name: server.name, definition: kept ? { ...rest, cwd: where } : rest, origin }
}
