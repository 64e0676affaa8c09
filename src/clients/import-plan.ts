import { dirname } from 'node:path'
import {
  type ClientFile,
  type ClientKind,
  clientFiles,
  clientLabels,
  folderOf,
  type HostEnvironment,
} from '../config/import/client-kind.ts'
import { type ReadServer, readServers, type ServerDefinition, type ServersFile } from '../config/import/read-servers.ts'
import {
  dependsOnFolder,
  fingerprint,
  identityOf,
  keepsState,
  settingsBeyond,
  statefulNote,
} from '../config/import/server-identity.ts'
import { escapeSchemes, escapeVariables, type ReferenceScheme } from '../config/interpolate.ts'
import { isFile } from '../config/locate.ts'
import { homeOf } from '../core/home.ts'
import { parseDuration } from '../lib/duration.ts'
import { type FindSecrets, mapTexts, type StoreSecret, schemesIn, withoutSecrets } from './secrets.ts'

export interface ImportOptions {
  /** Servers that are already in the configuration. */
  readonly known: ReadonlyMap<string, ServerDefinition>
  readonly find: FindSecrets
  readonly keep: StoreSecret
  /** Returns the missing variables and files to which a definition refers. */
  readonly missing: (definition: ServerDefinition) => readonly string[]
  /** Replaces references by what they refer to, where possible, to compare servers by their secrets. */
  readonly resolve: (definition: ServerDefinition) => ServerDefinition
  /** The names of servers that are added even if they are already configured. */
  readonly copies?: readonly string[] | undefined
}

export interface PlannedServer extends MergedServer {
  /** Missing variables and files. If there are any, the server is imported disabled to keep the configuration valid. */
  readonly waiting: readonly string[]
  /** The definition with its secrets instead of references to them, to validate it before the secrets are stored. */
  readonly withSecrets: ServerDefinition
}

/** Merges servers, replaces their secrets with references, and skips servers that are already configured. */
export async function planImport(found: readonly FoundServer[], options: ImportOptions) {
  const { known, find, keep, missing, resolve, copies = [] } = options
  const merged = merge(found)
  const added = new Map<string, PlannedServer>()
  /** Servers that are already in the configuration, and their configured names. */
  const present: { name: string; as: string }[] = []
  const notes = [...merged.notes]
  /** Number of secrets replaced by references. */
  let secrets = 0
  const resolved = new Map([...known].map(([name, definition]) => [name, resolve(definition)]))
  for (const { name, invalidName, definition: written, folder, origins, escaped = [] } of merged.servers) {
    const [origin] = origins
    const isPresent = (definition: ServerDefinition, among: ImportOptions['known']): boolean => {
      const twin = twinOf(definition, folder, among)
      if (!twin || copies.includes(name)) return false
      present.push({ name, as: twin.name })
      const ignored = settingsBeyond(written, twin.definition)
      if (origin && ignored.length > 0)
        notes.push(`${twin.name} is already configured; ${ignored.join(', ')} from ${called(origin)} is not imported`)
      return true
    }
    if (isPresent(resolve(written), resolved)) continue
    const { definition: safe, moved } = await withoutSecrets(name, written, find, keep)
    // Secrets in variables that are not set are compared by the variables' names.
    if (isPresent(safe, known)) continue
    const definition = withSession(tidy(safe))
    secrets += moved
    const free = origin ? freeName(name, origin, (other) => known.has(other) || added.has(other)) : name
    if (origin && free !== name)
      notes.push(`the name ${name} is in use; the server from ${called(origin)} is imported as ${free}`)
    if (invalidName !== undefined)
      notes.push(`${invalidName} is imported as ${free}, because its name is invalid in Toolway`)
    const waiting = written.disabled === true ? [] : missing(written)
    const disabled = waiting.length > 0 && { disabled: true }
    if (definition.session === 'caller' && keepsState(definition)) notes.push(statefulNote(free))
    const foreign = process.platform === 'win32' ? [] : windowsSettings(definition)
    if (foreign.length > 0)
      notes.push(`${free} was written for Windows (${foreign.join(', ')}); adapt it in mcpServers.${free}`)
    for (const scheme of escaped) notes.push(`${free} contains \${${scheme}:…}, which ${plainNotes[scheme]}`)
    const withSecrets = { ...withSession(tidy(written)), ...disabled }
    added.set(free, { name: free, definition: { ...definition, ...disabled }, origins, escaped, waiting, withSecrets })
  }
  return { added: [...added.values()], present, notes, secrets }
}

/**
 * Finds the configured server that a found one is, however the operator restricted it: a copy would be a way around
 * these restrictions.
 */
function twinOf(found: ServerDefinition, folder: unknown, known: ImportOptions['known']) {
  const definition = tidy(found)
  // Earlier versions wrote `cwd` in some cases where it does not matter.
  const variants = [definition, ...(folder === undefined ? [] : [{ ...definition, cwd: folder }])]
  const others = [...known].map(([name, other]) => ({ name, definition: tidy(other) }))
  const sameBy = (mark: typeof fingerprint) => {
    const marks = variants.map(mark)
    return others.find(({ definition }) => marks.includes(mark(definition)))
  }
  return sameBy(fingerprint) ?? sameBy(identityOf)
}

const plainNotes: Readonly<Record<ReferenceScheme, string>> = {
  exec: 'is added as plain text and does not run.',
  file: 'is added as plain text: no file is read.',
}

const windowsPath = /(?:^|[=/])[a-z]:\\|^\\\\\w|%(?:USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAMFILES|HOMEPATH|TEMP)%/i
const windowsCommand = /^[a-z]:[\\/]|\.(?:cmd|bat)$|^cmd$/i

/** The settings that contain something that exists only on Windows. */
function windowsSettings({ command, cwd, args, env }: ServerDefinition): string[] {
  const hasPath = (values: unknown) =>
    Object.values(values ?? {}).some((one) => typeof one === 'string' && windowsPath.test(one))
  const foreign = {
    command: windowsCommand.test(String(command)) || hasPath([command]),
    args: hasPath(args),
    env: hasPath(env),
    cwd: /^[a-z]:\//i.test(String(cwd)) || hasPath([cwd]),
  }
  return Object.entries(foreign).flatMap(([setting, isForeign]) => (isForeign ? [setting] : []))
}

/** Sets `session: caller` for stateful servers, which expect one caller: clients usually start their own process. */
const withSession = (definition: ServerDefinition): ServerDefinition =>
  definition.session === undefined && keepsState(definition) ? { ...definition, session: 'caller' } : definition

/** Order of the keys in the output. Keys not listed come last, in their original order. */
const order = ['description', 'command', 'args', 'env', 'envFile', 'cwd', 'url', 'transport', 'headers', 'auth']

/** Orders the keys and drops default values. */
function tidy(definition: ServerDefinition): ServerDefinition {
  const rank = (key: string) => (order.includes(key) ? order.indexOf(key) : order.length)
  const told = Object.entries(definition).filter(([key, value]) => !isDefault(key, value, definition))
  return Object.fromEntries(
    told.sort(([a], [b]) => rank(a) - rank(b)).map(([key, value]) => [key, key === 'timeout' ? rounded(value) : value]),
  )
}

/** Shortens a duration: `600000ms` becomes `10m`. */
function rounded(time: unknown): unknown {
  const count = Number(/^(\d+)ms$/.exec(String(time))?.[1] ?? Number.NaN)
  if (count % 60_000 === 0) return `${count / 60_000}m`
  return count % 1000 === 0 ? `${count / 1000}s` : time
}

function isDefault(key: string, value: unknown, { url }: ServerDefinition): boolean {
  if (key === 'disabled') return value === false
  if (key === 'transport') return value === 'stdio' || (value === 'http' && !/\/sse\/?(\?|#|$)/.test(String(url)))
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

interface Origin {
  /** The absolute path of the file. */
  readonly path: string
  /** The path as shown to the user; by default, the absolute path. */
  readonly shown?: string
  readonly client?: ClientKind
  readonly scope: 'user' | 'project'
}

export interface FoundServer extends Pick<ReadServer, 'name' | 'invalidName' | 'definition'> {
  readonly origin: Origin
  /** References that were escaped, because they are plain text where the server was found. */
  readonly escaped?: readonly ReferenceScheme[]
  /** The working folder, if it is not written as `cwd`, because it does not matter or is the default. */
  readonly folder?: unknown
}

interface MergedServer extends Omit<FoundServer, 'origin'> {
  /** Where the server was found, in order of discovery. */
  readonly origins: readonly Origin[]
}

export const called = ({ client, path, shown = path }: Origin): string => (client ? clientLabels[client] : shown)

/** Merges identical servers. A different server with the same name is renamed, with a note. */
export function merge(found: readonly FoundServer[]) {
  const merged = new Map<string, MergedServer>()
  const notes: string[] = []
  for (const { name, invalidName, definition, folder, origin, escaped = [] } of found) {
    const mark = fingerprint(definition)
    const twin = [...merged.values()].find(
      (other) => fingerprint(other.definition) === mark && other.origins.every(({ path }) => path !== origin.path),
    )
    if (twin) {
      if (twin.name !== name) notes.push(`${name} from ${called(origin)} is the same server as ${twin.name}`)
      merged.set(twin.name, joined(twin, definition, origin))
      continue
    }
    const free = freeName(name, origin, (other) => merged.has(other))
    if (free !== name)
      notes.push(`${called(origin)} has a different server named ${name}, which is imported as ${free}`)
    merged.set(free, { name: free, invalidName, definition, folder, origins: [origin], escaped })
  }
  return { servers: [...merged.values()], notes }
}

/** Merges two definitions of a server. The result is enabled if either of them is; the longer timeout wins. */
function joined(twin: MergedServer, definition: ServerDefinition, origin: Origin): MergedServer {
  const { disabled: _, timeout: __, ...rest } = twin.definition
  const disabled = twin.definition.disabled === true && definition.disabled === true
  const timeout = longer(twin.definition.timeout, definition.timeout)
  return {
    ...twin,
    definition: { ...rest, ...(disabled && { disabled }), ...(timeout !== undefined && { timeout }) },
    origins: [...twin.origins, origin],
  }
}

function longer(one: unknown, other: unknown): unknown {
  const length = (time: unknown) => parseDuration(String(time)) ?? -1
  return length(one) >= length(other) ? one : other
}

/** Returns `name` if it is free; otherwise appends the origin as a suffix. */
function freeName(name: string, { client, path }: Origin, taken: (name: string) => boolean): string {
  if (!taken(name)) return name
  const suffix = client ?? (path.replace(/^.*[\\/]|\.\w+$/g, '').replace(/[^\w-]+/g, '-') || 'imported')
  const other = `${name.slice(0, 40)}-${suffix}`
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? other : `${other}-${number}`
    if (!taken(candidate)) return candidate
  }
}

/**
 * Prepares a server for the configuration file `into`. If the source file only implies the working folder, `cwd` is
 * written only where it may matter: for project servers and for commands with relative paths. References that are plain
 * text where the server was found stay plain text.
 */
export function adaptServer(server: ReadServer, origin: Origin, into: string): FoundServer {
  const { impliedFolder, plain } = server
  const escaped = schemesIn(server.definition).filter((scheme) => plain.includes(scheme))
  const { cwd, ...rest } = mapTexts(server.definition, (text) => escapeSchemes(text, plain)) as ServerDefinition
  const where = impliedFolder ?? cwd
  const matters =
    impliedFolder === undefined ||
    origin.scope === 'project' ||
    impliedFolder !== folderOf(origin.path) ||
    dependsOnFolder(server.definition)
  const kept = where !== undefined && matters && where !== dirname(into)
  const folder = impliedFolder === undefined ? where : escapeVariables(impliedFolder)
  const { name, invalidName } = server
  const common = { name, invalidName, origin, escaped }
  return kept ? { ...common, definition: { ...rest, cwd: folder } } : { ...common, definition: rest, folder }
}

/** An existing client file and the servers that were read from it. */
export interface FoundFile extends ClientFile {
  readonly content: ServersFile
}

/** Returns the given clients' existing files; by default, those of all clients. */
export async function discover(around: HostEnvironment, clients?: readonly ClientKind[]): Promise<FoundFile[]> {
  const found: FoundFile[] = []
  for (const file of clientFiles(around, clients)) {
    if (await isFile(file.path))
      found.push({ ...file, content: await readServers(file.path, homeOf(around.env), file.client) })
  }
  return found
}
