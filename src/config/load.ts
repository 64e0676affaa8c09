import { basename } from 'node:path'
import { homeOf } from '../core/home.ts'
import { proxySecrets } from '../outbound/proxy.ts'
import { absolutePaths } from './absolute-paths.ts'
import { runCommands } from './commands.ts'
import { withDefaultAgent } from './default-agent.ts'
import { readDocuments, rulePlaces } from './documents.ts'
import { doubts } from './doubts.ts'
import { withEnvFiles } from './env-file.ts'
import { withFolders } from './folders.ts'
import type { Dialect } from './import/dialect.ts'
import { type Environment, interpolate } from './interpolate.ts'
import { locate } from './locate.ts'
import { merge } from './merge.ts'
import { ConfigError, type ConfigProblem, problemAt } from './problems.ts'
import type { Config } from './schema.ts'
import { branch, keyPath, type Path, placeOf } from './tree.ts'
import { refuseUnauthenticated } from './unauthenticated.ts'
import { validate } from './validate.ts'

export type { Dialect } from './import/dialect.ts'

/** A configuration and what there is to say about it. */
export interface LoadedConfig {
  readonly config: Config
  /** The files it was read from, in the order in which they were merged. */
  readonly files: readonly { readonly path: string; readonly dialect: Dialect }[]
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

export interface LoadOptions {
  /** Files to merge, later ones win; looked for in the usual places when there are none. */
  readonly paths?: readonly string[]
  readonly env: Environment
  readonly cwd: string
  /** Whether an empty file is one that somebody is just writing, and not a wish for defaults. */
  readonly whileRunning?: boolean
  /** What is about to be written to files, by their paths: it counts in the place of what they hold now. */
  readonly drafts?: ReadonlyMap<string, string>
}

const nothing = branch({ file: { path: '', text: '' }, offset: 0, key: '' })

const isOwnFile = (path: string): boolean => /^toolway\.\w+$/.test(basename(path))

/** Finds, reads, merges and checks the configuration; throws a ConfigError with everything that is wrong. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
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
      ...doubts(config, merged),
    ],
    problemAt: (path, message) => problemAt(placeOf(merged, path), message, { key: keyPath(path) }),
  }
  refuseUnauthenticated(loaded)
  return loaded
}
