import { dirname, resolve } from 'node:path'
import {
  escapeSchemes,
  escapeVariables,
  expand,
  interpolate,
  invalidReference,
  isDisabled,
  type ReferenceScheme,
  unescapeVariables,
} from '../interpolate.ts'
import { readSource } from '../locate.ts'
import { parseDocument } from '../parse/document.ts'
import { isRelative } from '../paths.ts'
import { type ConfigProblem, problemAt } from '../problems.ts'
import { configSchema } from '../schema.ts'
import { knownKeysAt } from '../schema-lookup.ts'
import {
  type BranchNode,
  type ConfigTree,
  isWithin,
  keyLocation,
  type LeafNode,
  leafText,
  leavesIn,
  mapLeaves,
  matchesPath,
  type Path,
  type SourceFile,
  toPlain,
  withKeyAt,
  withoutMember,
} from '../tree.ts'
import { asText, validate } from '../validate.ts'
import { type ClientKind, folderOf, kindOf } from './client-kind.ts'
import { validNames } from './server-identity.ts'
import {
  type ConfigDialect,
  createReport,
  isForeign,
  mapText,
  sectionMembers,
  shape,
  type TranslationReport,
} from './shape.ts'
import { plainSchemes, translate } from './translate.ts'

/** A server in Toolway's format, with variables and references not expanded. */
export type ServerDefinition = Readonly<Record<string, unknown>>

export interface ReadServer {
  readonly name: string
  /** The name in the file, if it is invalid in Toolway. */
  readonly invalidName?: string | undefined
  readonly definition: ServerDefinition
  readonly key: string
  /** The working folder that the source file implies. Undefined for a URL, or if the file sets `cwd`. */
  readonly impliedFolder: string | undefined
  /** References that are plain text to the program that owns the file. A copy of the definition escapes them. */
  readonly plain: readonly ReferenceScheme[]
  readonly problems: readonly ConfigProblem[]
}

export interface ServersFile extends TranslationReport {
  readonly path: string
  readonly dialect: ConfigDialect | undefined
  readonly servers: readonly ReadServer[]
  /** Top-level sections of Toolway's in the translated file, other than the servers. */
  readonly sections: readonly string[]
}

/** Reads the servers in a file without expanding variables. `kind` is the client that owns the file, if known. */
export async function readServers(path: string, home: string, kind?: ClientKind): Promise<ServersFile> {
  const source = await readSource(path)
  if ('message' in source) return { ...nothingIn(path), problems: [source] }
  return readServersFrom(source, home, kind)
}

const nothingIn = (path: string) => ({
  path,
  dialect: undefined,
  servers: [],
  sections: [],
  notes: [],
  warnings: [],
})

const otherSections = knownKeysAt(configSchema, []).filter((key) => !['mcpServers', '$schema', 'version'].includes(key))

/** Reads the servers in a text as if it were the content of a file. */
export async function readServersFrom(source: SourceFile, home: string, kind?: ClientKind): Promise<ServersFile> {
  const { path } = source
  const { tree, problems } = await parseDocument(source)
  if (problems.length > 0) return { ...nothingIn(path), problems: [...problems] }
  const { tree: translated, ...translation } = translate(tree, home, kind)
  const portable = mapLeaves(mapLeaves(translated, asText), carried) as BranchNode
  const plain = plainSchemes(tree, translation.dialect, kind ?? kindOf(path))
  const members = sectionMembers(portable.members.get('mcpServers'), translation)
  const nameOf = validNames(members.keys())
  const servers = [...members].flatMap(([written, node]) => {
    const name = isForeign(translation.dialect) ? nameOf(written) : written
    const read = node.kind === 'branch' ? readServer(name, node, plain, translation.problems) : notServer(name, node)
    return read && name !== written ? { ...read, invalidName: written } : (read ?? [])
  })
  const own = servers.flatMap((server) => server.problems)
  return {
    path,
    ...translation,
    problems: translation.problems.filter((problem) => !own.includes(problem)),
    servers,
    sections: otherSections.filter((key) => portable.members.has(key)),
  }
}

/** A value that is not a section, as a server with a problem. An empty one counts as absent. */
function notServer(name: string, node: ConfigTree): ReadServer | undefined {
  const report = createReport()
  sectionMembers(node, report)
  const { problems } = report
  if (problems.length === 0) return undefined
  return { name, definition: {}, key: node.at.key, impliedFolder: undefined, plain: [], problems }
}

function readServer(
  name: string,
  server: BranchNode,
  plain: readonly ReferenceScheme[],
  problems: readonly ConfigProblem[],
): ReadServer {
  const { key } = server.at
  const copy = mapLeaves(server, (part) => mapText(part, (text) => escapeSchemes(text, plain))) as BranchNode
  // Validate without `envFile`: that file is not read here, and its variables cannot make the server invalid.
  const alone = shape(copy.at, {
    mcpServers: shape(copy.at, { [name]: withKeyAt(withoutMember(copy, 'envFile'), copy.at) }),
  })
  const outcome = validate(interpolate(alone, {}).tree)
  return {
    name,
    definition: toPlain(server) as ServerDefinition,
    key,
    impliedFolder: impliedFolder(server),
    plain,
    problems: [
      ...problems.filter((problem) => isWithin(problem.key, key)),
      ...('problems' in outcome ? outcome.problems : []),
      ...unusable(server, plain),
    ],
  }
}

function impliedFolder(server: BranchNode): string | undefined {
  const [command, cwd] = ['command', 'cwd'].map((key) => server.members.get(key))
  if (!command) return undefined
  if (!cwd) return folderOf(server.at.file.path)
  return keyLocation(cwd) === keyLocation(command) ? unescapeVariables(String(toPlain(cwd))) : undefined
}

/**
 * Reports values that cannot be imported: those that cannot be converted before their variables are expanded and, as
 * in a configuration that is loaded, references that are invalid, unless the server is disabled.
 */
function unusable(server: BranchNode, plain: readonly ReferenceScheme[]): ConfigProblem[] {
  const isOff = isDisabled(server)
  return leavesIn(server).flatMap(([part]) => {
    const text = isOff ? '' : escapeSchemes(leafText(part) ?? '', plain)
    const fault = part.finish ? 'a variable cannot be imported here; write the value itself' : invalidReference(text)
    return fault === undefined ? [] : [problemAt(part.at, fault)]
  })
}

const pathKeys = ['mcpServers.*.cwd', 'mcpServers.*.envFile', 'mcpServers.*.guards.*.roots.*']

/** Makes a value independent of the file that contains it: relative paths become absolute. */
function carried(part: LeafNode, path: Path): LeafNode {
  if (typeof part.value !== 'string') return part
  const { finish, ...rest } = part
  const expansion = finish && expand(part.value, {})
  if (finish && expansion && 'text' in expansion) return { ...rest, value: finish(expansion.text) }
  const folder = dirname(part.at.file.path)
  const referring = part.value.replace(/(?<!\$)\$\{file:([^}]+)\}/g, (written, named: string) =>
    isRelative(named) ? `\${file:${resolve(folder, named)}}` : written,
  )
  const placed = pathKeys.some((pattern) => matchesPath(pattern, path)) && isRelative(referring)
  return { ...part, value: placed ? resolve(escapeVariables(folder), referring) : referring }
}
