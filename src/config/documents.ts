import { dirname, join, resolve } from 'node:path'
import { type ConfigDialect, isForeign, type Translation, translate } from './import/dialect.ts'
import { rulesName, withCallerSessions } from './import/gateway-rules.ts'
import { namesIn, validNames, withPlainNames } from './import/plain-names.ts'
import type { EnvVars } from './interpolate.ts'
import { isFile, ownershipProblems, readSource } from './locate.ts'
import { parseDocument } from './parse/document.ts'
import { ConfigError, type ConfigProblem, fileProblem } from './problems.ts'

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
export async function readDocuments(paths: readonly string[], options: ReadOptions) {
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
export const rulesFiles = (paths: readonly string[], env: EnvVars, cwd: string): string[] =>
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
