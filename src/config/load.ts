import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type * as z from 'zod'
import { homeOf, stateHome } from '../core/home.ts'
import { isPath, isSecretName } from '../core/secret-name.ts'
import { proxySecrets } from '../egress/proxy.ts'
import { rulesName, withCallerSessions } from './import/gateway-files.ts'
import { namesIn, validNames, withPlainNames } from './import/server-identity.ts'
import { type ConfigDialect, isForeign } from './import/shape.ts'
import { type Translation, translate } from './import/translate.ts'
import {
  type EnvVars,
  escapeVariables,
  expand,
  interpolate,
  isDisabled,
  type NewReference,
  newReferences,
} from './interpolate.ts'
import { isFile, locate, ownershipProblems, readSource } from './locate.ts'
import { parseDocument } from './parse/document.ts'
import { absolutePaths, inHome } from './paths.ts'
import { ConfigError, type ConfigProblem, fileProblem, problemAt } from './problems.ts'
import type { Config, configSchema } from './schema.ts'
import { runCommands } from './secret-command.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  find,
  keyPath,
  type LeafNode,
  leaf,
  leafText,
  locationOf,
  mapServers,
  membersIn,
  type Path,
  type SourceLocation,
  serverNodes,
  withMember,
  withoutMember,
} from './tree.ts'
import { placeholderProblems, validate } from './validate.ts'
import { configWarnings, refuseUnauthenticated } from './warnings.ts'

export interface LoadedConfig {
  readonly config: Config
  /** The files that were read, in merge order. */
  readonly files: readonly { readonly path: string; readonly dialect: ConfigDialect }[]
  /** Paths to watch: configuration files that were read or searched for, rules, and files with secrets. */
  readonly filesToWatch: readonly string[]
  /** Values from files, commands, secret variables and proxy URLs. They must never be logged or stored. */
  readonly secrets: readonly string[]
  readonly notes: readonly string[]
  /** Messages about settings that are valid but probably unintended. */
  readonly warnings: readonly string[]
  /** Describes a problem found after loading, with its location in the files. */
  problemAt(path: Path, message: string): ConfigProblem
}

interface LoadConfigOptions extends Omit<ReadOptions, 'home'> {
  /** Files to merge; later ones win. If empty, the default locations are searched. */
  readonly paths?: readonly string[]
  /** Called with each reference of a draft that the files on disk do not contain. New commands are not run. */
  onNewReference?(reference: NewReference): void
}

const nothing = branch({ file: { path: '', text: '' }, offset: 0, key: '' })

/**
 * Whether commands in a file run: not in other programs' files that were found automatically, because cloned
 * repositories can contain them. `named` are the paths that the user has named.
 */
export const runsCommands = (path: string, named: readonly string[], env: EnvVars): boolean =>
  named.length > 0 || Boolean(env.TOOLWAY_CONFIG || env.GATEWAY_MCP_CONFIG) || /^toolway\.\w+$/.test(basename(path))

/** Finds, reads, merges and validates the configuration. If it is invalid, throws one ConfigError with all problems. */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const { paths = [], env, cwd, drafts, onNewReference } = options
  const home = homeOf(env)
  const located = await locate(paths, env, cwd)
  if (located.problems.length > 0) throw new ConfigError(located.problems)
  const read = await readDocuments(located.paths, { ...options, home })
  const { documents } = read
  const own = documents.reduce((base, { tree }) => merge(base, tree), nothing)
  const merged = withDefaultAgent(own, documents, env)
  const complete = await withEnvFiles(merged, env, home)
  const trusted = new Set(documents.map(({ path }) => path).filter((path) => runsCommands(path, paths, env)))
  const saved = drafts && (await savedTree(located.paths, { ...options, home }))
  if (saved && onNewReference) newReferences(saved, merged).forEach(onNewReference)
  const run = await runCommands(complete.tree, env, trusted, saved)
  const filled = interpolate(complete.tree, env, home, run)
  const outcome = validate(absolutePaths(filled.tree, home))
  const problems = [
    ...documents.flatMap((document) => document.problems),
    ...placeholderProblems(merged),
    ...complete.problems,
    ...filled.problems,
    ...('problems' in outcome ? outcome.problems : []),
  ]
  const secretFiles = [...complete.files, ...filled.files]
  if (problems.length > 0 || !('config' in outcome)) throw new ConfigError(problems, secretFiles)
  const config = withFolders(outcome.config, merged, located.paths, env)
  const loaded: LoadedConfig = {
    config,
    files: documents.map(({ path, dialect }) => ({ path, dialect })),
    filesToWatch: [
      ...new Set([...located.filesToWatch, ...rulesFiles(located.filesToWatch, env, cwd), ...secretFiles]),
    ],
    secrets: [...filled.secrets, ...proxySecrets(env), ...secretVariables(env)],
    notes: documents.flatMap(({ path, notes }) => notes.map((note) => `${path}: ${note}`)),
    warnings: [
      ...located.warnings,
      ...read.warnings,
      ...documents.flatMap(({ warnings }) => warnings),
      ...configWarnings(config, merged),
    ],
    problemAt: (path, message) => problemAt(locationOf(merged, path), message, { key: keyPath(path) }),
  }
  refuseUnauthenticated(loaded)
  return loaded
}

/** The configuration on disk, without drafts; empty if it cannot be read. */
async function savedTree(paths: readonly string[], { drafts: _, ...options }: ReadOptions): Promise<BranchNode> {
  try {
    return (await readDocuments(paths, options)).documents.reduce((base, { tree }) => merge(base, tree), nothing)
  } catch (thrown) {
    if (thrown instanceof ConfigError) return nothing
    throw thrown
  }
}

/** Applies TOOLWAY_DEFAULT_AGENT. GATEWAY_DEFAULT_AGENT is applied only if there is a gateway rules file. */
function withDefaultAgent(tree: BranchNode, documents: readonly ConfigDocument[], env: EnvVars): BranchNode {
  const ruled = documents.some(({ dialect }) => dialect === 'gateway-rules')
  const name = env.TOOLWAY_DEFAULT_AGENT ? 'TOOLWAY_DEFAULT_AGENT' : ruled ? 'GATEWAY_DEFAULT_AGENT' : undefined
  const agent = name === undefined ? undefined : env[name]
  if (!name || !agent) return tree
  const at = { file: { path: name, text: agent }, offset: 0, key: 'defaults.agent' }
  return merge(tree, branch(at, [['defaults', branch(at, [['agent', leaf(at, escapeVariables(agent))]])]]))
}

/** Merges sections. Other values in `over` replace those in `base`; null removes a value. */
function merge(base: BranchNode, over: BranchNode): BranchNode {
  const members = new Map(base.members)
  for (const [key, next] of over.members) {
    const known = base.members.get(key)
    members.set(key, known?.kind === 'branch' && next.kind === 'branch' ? merge(known, next) : next)
  }
  return { ...over, members }
}

type Checked = z.output<typeof configSchema>

/** Sets the folders whose defaults depend on the location of the configuration. */
function withFolders(config: Checked, tree: ConfigTree, paths: readonly string[], env: EnvVars): Config {
  const state = stateFolder(env)
  const path = config.stores.path ?? join(state, ownerOf(state) === paths.join('\n') ? 'default' : nameOf(paths))
  const common = config.stores.path ?? state
  return {
    ...config,
    mcpServers: withWorkingFolders(config.mcpServers, tree),
    stores: { ...config.stores, path, common },
    audit: { ...config.audit, path: config.audit.path ?? join(path, 'audit') },
  }
}

const stateFolder = (env: EnvVars): string => join(stateHome(env), 'toolway')

/** Names the configuration file that keeps using the state folder of a gateway without a file. */
const ownerFile = (state: string): string => join(state, 'default', 'configuration')

function ownerOf(state: string): string | undefined {
  try {
    return readFileSync(ownerFile(state), 'utf8').trimEnd()
  } catch {
    return undefined
  }
}

interface ClaimedState {
  /** The state folder of a gateway without a configuration file. */
  readonly folder: string
  /** The configuration file that keeps using it. */
  readonly configFile: string
}

/**
 * Lets the configuration file at `path`, which is the first one that is found here, keep the keys, approvals and audit
 * log from before it existed. Otherwise a running gateway and the commands would use different state folders. Returns
 * undefined if there is no such state. Only one file can keep it.
 */
export async function claimDefaultState(path: string, env: EnvVars): Promise<ClaimedState | undefined> {
  const state = stateFolder(env)
  const known = join(state, 'default')
  const content = await readdir(known).catch(() => [])
  if (content.length === 0 || existsSync(join(state, nameOf([path])))) return undefined
  // If it cannot be written, or another configuration file already uses the folder, the new file has its own folder.
  await writeFile(ownerFile(state), `${path}\n`, { flag: 'wx', mode: 0o600 }).catch(() => {})
  const configFile = ownerOf(state)
  return configFile === undefined ? undefined : { folder: known, configFile }
}

/** Name of this configuration's subfolder in the user's state folder. State is not stored in the project. */
const nameOf = (paths: readonly string[]): string =>
  paths.length === 0 ? 'default' : createHash('sha256').update(paths.join('\n')).digest('hex').slice(0, 12)

/** Sets the default working folder for programs: the folder of the file that defines the server, not the gateway's. */
function withWorkingFolders(servers: Checked['mcpServers'], tree: ConfigTree): Checked['mcpServers'] {
  const placed = Object.entries(servers).map(([name, server]) => {
    if (server.transport !== 'stdio' || server.cwd !== undefined) return [name, server] as const
    return [name, { ...server, cwd: dirname(locationOf(tree, ['mcpServers', name, 'command']).file.path) }] as const
  })
  return Object.fromEntries(placed)
}

/** Secrets that plugins and libraries, such as PostgreSQL's, read from the environment themselves. */
const secretVariables = (env: EnvVars): string[] =>
  Object.entries(env).flatMap(([name, value = '']) => (isSecretName(name) && !isPath(value) ? [value] : []))

export interface ConfigDocument extends Translation {
  readonly path: string
}

export interface ReadOptions {
  readonly env: EnvVars
  readonly cwd: string
  readonly home: string
  /** Whether to reject empty files, as in drafts. Set while the gateway is running: an editor may be saving one. */
  readonly whileRunning?: boolean
  /** Unsaved file contents by path; used instead of the files on disk. */
  readonly drafts?: ReadonlyMap<string, string>
}

/** Reads configuration files and their rules file. Throws one ConfigError with the parse errors in all of them. */
async function readDocuments(paths: readonly string[], options: ReadOptions) {
  const { env, cwd } = options
  const documents = await readAll(paths, options)
  const rulesPath = await findRules(documents, env, cwd)
  const warnings =
    env.GATEWAY_RULES && !documents.some(({ dialect }) => takesRules(dialect))
      ? ['GATEWAY_RULES has no effect: it belongs to a plain mcpServers file, and none was read']
      : []
  const rules = rulesPath === undefined ? [] : await readAll([rulesPath], options)
  const paired = rules.length > 0 || documents.some(({ dialect }) => dialect === 'gateway-rules')
  const last = documents.findLastIndex(({ dialect }) => takesRules(dialect))
  // Insert the rules right after the servers that they apply to, so that later files still override the rules.
  const all = documents.toSpliced(last + 1, 0, ...rules)
  const nameOf = validNames(all.flatMap(({ tree }) => namesIn(tree)))
  return { documents: all.map((one) => finished(one, paired, nameOf)), warnings }
}

/**
 * Finishes an imported document. Servers get plain names, but servers with rules keep the names that the rules refer
 * to, and each caller gets its own connections to them.
 */
function finished(document: ConfigDocument, paired: boolean, nameOf: (written: string) => string): ConfigDocument {
  const { dialect, tree } = document
  if (paired && takesRules(dialect)) return { ...document, tree: withCallerSessions(tree) }
  return isForeign(dialect) ? { ...document, tree: withPlainNames(tree, nameOf, document) } : document
}

const takesRules = (dialect: ConfigDialect) => dialect === 'mcpServers'

async function readAll(
  paths: readonly string[],
  { whileRunning, home, drafts }: ReadOptions,
): Promise<ConfigDocument[]> {
  const problems: ConfigProblem[] = []
  const documents: ConfigDocument[] = []
  for (const path of paths) {
    const draft = drafts?.get(path)
    const source = draft === undefined ? await readSource(path) : { path, text: draft }
    if ('message' in source) {
      problems.push(source)
      continue
    }
    const { tree, isEmpty, problems: faults } = await parseDocument(source)
    problems.push(...faults)
    if (isEmpty && (whileRunning || draft !== undefined)) {
      problems.push(fileProblem(path, 'this file is empty; write {} to use the defaults'))
      continue
    }
    if (faults.length === 0) documents.push({ path, ...translate(tree, home) })
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return documents
}

/** The paths at which the rules for these configuration files may be found. */
const rulesFiles = (paths: readonly string[], env: EnvVars, cwd: string): string[] =>
  env.GATEWAY_RULES ? [resolve(cwd, env.GATEWAY_RULES)] : paths.map((path) => join(dirname(path), rulesName))

async function findRules(documents: readonly ConfigDocument[], env: EnvVars, cwd: string): Promise<string | undefined> {
  const servers = documents.filter(({ dialect }) => takesRules(dialect))
  if (servers.length === 0 || documents.some(({ dialect }) => dialect === 'gateway-rules')) return undefined
  if (env.GATEWAY_RULES) return resolve(cwd, env.GATEWAY_RULES)
  for (const { path } of servers.toReversed()) {
    const beside = join(dirname(path), rulesName)
    if (!(await isFile(beside))) continue
    const problems = await ownershipProblems(beside, env)
    if (problems.length > 0) throw new ConfigError(problems)
    return beside
  }
  return undefined
}

/** Merges each server's `envFile` into its `env`, whose own keys win. A change to one of `files` requires a reload. */
async function withEnvFiles(tree: BranchNode, env: EnvVars, home: string) {
  const problems: ConfigProblem[] = []
  const files: string[] = []
  const variablesIn = async (named: LeafNode, text: string): Promise<NodeJS.Dict<string>> => {
    const expansion = expand(text, env)
    if (!('text' in expansion)) {
      problems.push(problemAt(named.at, expansion.fault))
      return {}
    }
    const path = inHome(expansion.text, home) ?? resolve(dirname(named.at.file.path), expansion.text)
    files.push(path)
    const source = await readSource(path)
    if (!('message' in source)) return parseEnv(source.text)
    problems.push(problemAt(named.at, `${path}: ${source.message}`))
    return {}
  }
  const changed = new Map<string, BranchNode>()
  for (const [name, server] of serverNodes(tree)) {
    const named = find(server, ['envFile'])
    const text = leafText(named)
    if (server.kind !== 'branch' || named?.kind !== 'leaf' || text === undefined) continue
    const variables = isDisabled(server) ? {} : await variablesIn(named, text)
    changed.set(name, withVariables(withoutMember(server, 'envFile'), variables, named.at))
  }
  return { tree: mapServers(tree, (server, name) => changed.get(name) ?? server), problems, files }
}

function withVariables(server: BranchNode, variables: NodeJS.Dict<string>, at: SourceLocation): BranchNode {
  const written = find(server, ['env'])
  // Leave an `env` that is not a section unchanged: schema validation reports the error.
  if (written !== undefined && written.kind !== 'branch') return server
  const read = Object.entries(variables).map(([name, value = '']) => {
    return [name, { ...leaf(at, escapeVariables(value)), variables: 'filled' }] as const
  })
  const env = branch(written?.at ?? at, [...read, ...membersIn(written)])
  return env.members.size === 0 ? server : withMember(server, 'env', env)
}
