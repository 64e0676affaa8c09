import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRedactor, type Redactor } from '../../audit/redact/redactor.ts'
import { secretsOf } from '../../audit/redact/secrets.ts'
import { readServers } from '../../config/import/read-servers.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { locate } from '../../config/locate.ts'
import { ConfigError, type ConfigProblem } from '../../config/problems.ts'
import type { Config } from '../../config/schema.ts'
import { secretSettings } from '../../config/schema-lookup.ts'
import { homeOf } from '../../core/home.ts'
import { policyDoubts } from '../../policy/config-warnings.ts'
import { commandName, relativeTo, type Shell, shortPath } from '../kit.ts'
import { type CommonOptions, load } from '../load.ts'
import { count, oneLine, printable, quoted } from '../table.ts'
import { type CheckFinding, type CheckResult, type DoctorCheck, ok, problem, warning } from './finding.ts'
import { privateFile } from './private-file.ts'

/** The configuration as far as there is one, and what is wrong with it. */
export interface DoctorContext {
  /** Absent where it cannot be used. Where nothing but variables is missing, it is read as if they were set. */
  readonly loaded: LoadedConfig | undefined
  readonly problems: readonly ConfigProblem[]
  /** The same; or, where it cannot be used, one that has the sound ones of its servers and nothing else. */
  readonly understood: Config | undefined
  /** What files, commands and secret variables gave for it. */
  readonly secrets: readonly string[]
  /** The variables that servers lack, by key. */
  readonly unset: readonly UnsetVariable[]
}

interface UnsetVariable {
  readonly key: string
  readonly variable: string
}

type Outcome = Pick<DoctorContext, 'loaded' | 'problems'>

/** Reads the configuration. A broken one is what the doctor is there for, so it is no reason to stop. */
export async function situationOf(shell: Shell, options: CommonOptions): Promise<DoctorContext> {
  const outcome = await read(shell, options)
  const tried = outcome.loaded ? outcome : await withSoundServers(shell, options, (config) => read(shell, { config }))
  return {
    ...outcome,
    understood: tried?.loaded?.config,
    secrets: tried?.loaded?.secrets ?? [],
    unset: (tried?.problems ?? []).flatMap((problem) => {
      const variable = unsetVariable(problem)
      return variable === undefined ? [] : [{ key: problem.key, variable }]
    }),
  }
}

async function read(shell: Shell, options: CommonOptions): Promise<Outcome> {
  try {
    return { loaded: await load(shell, options), problems: [] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { loaded: await readAsIfSet(error, shell, options), problems: error.problems }
  }
}

/** What a variable that is not set is read as: good for an address, too. */
const standIn = 'http://unset.invalid/'

/** One server's missing variable must not keep the others from being looked at. */
async function readAsIfSet(
  { problems }: ConfigError,
  shell: Shell,
  options: CommonOptions,
): Promise<LoadedConfig | undefined> {
  const unset = problems.map(unsetVariable)
  if (unset.includes(undefined)) return undefined
  const env = { ...shell.env, ...Object.fromEntries(unset.map((name) => [name, standIn])) }
  return load({ ...shell, env }, options).catch((error: unknown) => {
    if (error instanceof ConfigError) return undefined
    throw error
  })
}

/** The variable that a problem is about, if it is about one that is not set. */
const unsetVariable = ({ message }: ConfigProblem): string | undefined =>
  /^the variable (\w+) is not set/.exec(message)?.[1]

/**
 * Reads a configuration that has nothing but the servers that are sound by themselves, of one that cannot be used as a
 * whole; undefined where there are none. It stands in a file of its own only while it is read.
 */
async function withSoundServers<T>(
  { env, cwd }: Shell,
  { config = [] }: CommonOptions,
  read: (paths: readonly string[]) => Promise<T>,
): Promise<T | undefined> {
  const home = homeOf(env)
  const { paths } = await locate(config, env, cwd, home)
  const files = await Promise.all(paths.map((path) => readServers(path, home)))
  const sound = files.flatMap(({ servers }) => servers).filter(({ problems }) => problems.length === 0)
  if (sound.length === 0) return undefined
  const mcpServers = Object.fromEntries(
    sound.map(({ name, definition, impliedFolder: folder }) => [
      name,
      folder ? { cwd: folder, ...definition } : definition,
    ]),
  )
  await using folder = await mkdtempDisposable(join(tmpdir(), 'toolway-doctor-'))
  const path = join(folder.path, 'toolway.json')
  await writeFile(path, JSON.stringify({ mcpServers }), { mode: 0o600 })
  return await read([path])
}

/** More problems are only counted. */
const maxProblems = 20

/** Reports the files of the configuration, its problems and its warnings. */
export const configurationCheck = (situation: DoctorContext, shell: Shell): DoctorCheck => ({
  name: 'configuration',
  run: async () =>
    situation.problems.length > 0
      ? brokenFindings(situation.problems, shell)
      : soundFindings(situation.loaded as LoadedConfig, shell),
})

function brokenFindings(problems: readonly ConfigProblem[], shell: Shell): CheckFinding[] {
  const told = problems.slice(0, maxProblems).map((one) => brokenFinding(one, shell))
  const rest = problems.length - told.length
  const validate = `${commandName(shell.env)} validate`
  return rest > 0 ? [...told, problem(`${count(rest, 'problem')} more`, validate)] : told
}

function brokenFinding(found: ConfigProblem, shell: Shell): CheckFinding {
  const { file, line, column, key, message } = found
  const place = [shortPath(file, shell), line, column].filter((part) => part !== undefined).join(':')
  const variable = unsetVariable(found)
  const mend = line === undefined ? `ls -l ${quoted(file)}` : `fix ${place}, then: ${commandName(shell.env)} validate`
  const remedy = variable === undefined ? mend : `export ${variable}=…`
  return problem([place, key, message].filter((part) => part !== '').join(': '), remedy)
}

function soundFindings({ config, files, warnings }: LoadedConfig, shell: Shell): CheckFinding[] {
  const command = commandName(shell.env)
  const read = files.map(({ path }) => shortPath(path, shell)).join(', ')
  const servers = count(Object.keys(config.mcpServers).length, 'server')
  const agents = count(Object.keys(config.agents).length, 'agent')
  const found =
    files.length === 0
      ? ok('no file was found, so defaults apply', { remedy: `${command} init` })
      : ok(`${read} is valid: ${servers}, ${agents}`)
  const doubts = [...warnings, ...policyDoubts(config)].map((text) => warning(relativeTo(text, shell.cwd)))
  return [found, ...doubts]
}

/** A redactor for the secrets of the configuration and the generated token. */
export async function redactorFor({
  understood: config,
  secrets,
}: Pick<DoctorContext, 'understood' | 'secrets'>): Promise<Redactor> {
  if (config === undefined) return createRedactor({ secrets: [], keys: [] })
  const path = join(config.stores.common, 'token')
  const { text } = await privateFile({ path, shown: path, what: 'the token' })
  const known = secretsOf(secretSettings(config), [...secrets, text ?? ''])
  return createRedactor({ secrets: known, keys: config.audit.redact })
}

/**
 * Removes known secrets and control characters from all findings. Texts of servers are already redacted further; a remedy
 * that names `token:` must stay readable.
 */
export const concealer =
  ({ known }: Redactor) =>
  ({ message, remedy, details, ...rest }: CheckResult): CheckResult => {
    const clean = (text: string) => String(known(text) ?? '')
    return {
      ...rest,
      message: oneLine(clean(message)),
      ...(remedy !== undefined && { remedy: printable(clean(remedy)) }),
      ...(details !== undefined && { details: details.map((line) => oneLine(clean(line))) }),
    }
  }
