import { createHash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import type * as z from 'zod'
import { homeOf } from '../core/home.ts'
import { proxySecrets } from '../lib/proxy.ts'
import { type ConfigDocument, readDocuments, rulePlaces } from './documents.ts'
import { withEnvFiles } from './env-file.ts'
import type { ConfigDialect } from './import/dialect.ts'
import { type EnvVars, interpolate } from './interpolate.ts'
import { folder, locate } from './locate.ts'
import { absolutePaths } from './paths.ts'
import { ConfigError, type ConfigProblem, problemAt } from './problems.ts'
import type { Config, configSchema } from './schema.ts'
import { runCommands } from './secret-command.ts'
import { type BranchNode, branch, type ConfigTree, keyPath, leaf, locationOf, member, type Path } from './tree.ts'
import { refuseUnauthenticated } from './unauthenticated.ts'
import { validate } from './validate.ts'
import { configWarnings } from './warnings.ts'

/** A configuration and what there is to say about it. */
export interface LoadedConfig {
  readonly config: Config
  /** The files it was read from, in the order in which they were merged. */
  readonly files: readonly { readonly path: string; readonly dialect: ConfigDialect }[]
  /** Where a change may mean another configuration: files that were read or looked for, rules, secrets. */
  readonly places: readonly string[]
  /** What files, commands, secret variables and addresses of proxies gave, wherever it stands now: none of it is to be written down. */
  readonly secrets: readonly string[]
  /** What was understood, file by file. */
  readonly notes: readonly string[]
  /** What is valid but hardly meant. */
  readonly warnings: readonly string[]
  /** Something wrong that is found out only later, at its place in the files. */
  problemAt(path: Path, message: string): ConfigProblem
}

interface LoadConfigOptions {
  /** Files to merge, later ones win; looked for in the usual places when there are none. */
  readonly paths?: readonly string[]
  readonly env: EnvVars
  readonly cwd: string
  /** Whether an empty file is one that somebody is just writing, and not a wish for defaults. */
  readonly whileRunning?: boolean
  /** What is about to be written to files, by their paths: it counts in the place of what they hold now. */
  readonly drafts?: ReadonlyMap<string, string>
}

const nothing = branch({ file: { path: '', text: '' }, offset: 0, key: '' })

const isOwnFile = (path: string): boolean => /^toolway\.\w+$/.test(basename(path))

/** Finds, reads, merges and checks the configuration; throws a ConfigError with everything that is wrong. */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const { paths = [], env, cwd, whileRunning = false, drafts } = options
  const home = homeOf(env)
  const located = await locate(paths, env, cwd, home)
  const read = await readDocuments(located.paths, { env, cwd, home, whileRunning, ...(drafts && { drafts }) })
  const { documents } = read
  const merged = withDefaultAgent(
    documents.reduce((base, { tree }) => merge(base, tree), nothing),
    documents,
    env,
  )
  const complete = await withEnvFiles(merged, env, home)
  // A file of another program that was merely found may lie in any folder that somebody has checked out.
  const named = paths.length > 0 || Boolean(env.TOOLWAY_CONFIG || env.GATEWAY_MCP_CONFIG)
  const trusted = new Set(documents.map(({ path }) => path).filter((path) => named || isOwnFile(path)))
  const filled = interpolate(complete.tree, env, home, await runCommands(complete.tree, env, trusted))
  const outcome = validate(absolutePaths(filled.tree, home))
  const problems = [
    ...documents.flatMap((document) => document.problems),
    ...complete.problems,
    ...filled.problems,
    ...('problems' in outcome ? outcome.problems : []),
  ]
  const secretFiles = [...complete.files, ...filled.files]
  if (problems.length > 0 || !('config' in outcome)) throw new ConfigError(problems, secretFiles)
  const config = withFolders(outcome.config, { tree: merged, paths: located.paths, env, home })
  const loaded: LoadedConfig = {
    config,
    files: documents.map(({ path, dialect }) => ({ path, dialect })),
    places: [...new Set([...located.places, ...rulePlaces(located.places, env, cwd), ...secretFiles])],
    secrets: [...filled.secrets, ...proxySecrets(env)],
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

/** A variable says who callers are by default; the older one counts only beside the rules that it belongs to. */
function withDefaultAgent(tree: BranchNode, documents: readonly ConfigDocument[], env: EnvVars): BranchNode {
  const ruled = documents.some(({ dialect }) => dialect === 'gateway-rules')
  const name = env.TOOLWAY_DEFAULT_AGENT ? 'TOOLWAY_DEFAULT_AGENT' : ruled ? 'GATEWAY_DEFAULT_AGENT' : undefined
  const agent = name === undefined ? undefined : env[name]
  if (!name || !agent) return tree
  const at = { file: { path: name, text: agent }, offset: 0, key: 'defaults.agent' }
  // What a variable holds is taken as it is: a `${` in it means nothing.
  const value = leaf(
    at,
    agent.replaceAll('${', () => '$${'),
  )
  return merge(tree, branch(at, [['defaults', member(branch(at, [['agent', member(value)]]))]]))
}

/** Lays one document over another: objects merge, everything else is replaced; null takes a value away. */
function merge(base: BranchNode, over: BranchNode): BranchNode {
  const members = new Map(base.members)
  for (const [key, entry] of over.members) {
    const known = base.members.get(key)
    members.set(key, known ? { at: entry.at, value: overlay(known.value, entry.value) } : entry)
  }
  return branch(over.at, members)
}

const overlay = (base: ConfigTree, over: ConfigTree): ConfigTree =>
  base.kind === 'branch' && over.kind === 'branch' ? merge(base, over) : over

type Checked = z.output<typeof configSchema>

interface Surroundings {
  readonly tree: ConfigTree
  readonly paths: readonly string[]
  readonly env: EnvVars
  readonly home: string
}

/** Fills in the folders that depend on where the configuration was found. */
function withFolders(config: Checked, { tree, paths, env, home }: Surroundings): Config {
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
function withWorkingFolders(servers: Checked['mcpServers'], tree: ConfigTree): Checked['mcpServers'] {
  const placed = Object.entries(servers).map(([name, server]) => {
    if (server.transport !== 'stdio' || server.cwd !== undefined) return [name, server] as const
    return [name, { ...server, cwd: dirname(locationOf(tree, ['mcpServers', name, 'command']).file.path) }] as const
  })
  return Object.fromEntries(placed)
}
