import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRedactor, type Redactor } from '../../audit/redact/redactor.ts'
import { secretsOf } from '../../audit/redact/secrets.ts'
import { schemesIn } from '../../clients/secrets.ts'
import { readServers } from '../../config/import/read-servers.ts'
import { escapeVariables } from '../../config/interpolate.ts'
import { type LoadedConfig, runsCommands } from '../../config/load.ts'
import { locate } from '../../config/locate.ts'
import { ConfigError, type ConfigProblem } from '../../config/problems.ts'
import type { Config } from '../../config/schema.ts'
import { secretSettings } from '../../config/schema-lookup.ts'
import { homeOf } from '../../core/home.ts'
import { pluralize, shellQuote } from '../../lib/message-text.ts'
import { policyWarnings } from '../../policy/policy-warnings.ts'
import type { CommonOptions } from '../command-table.ts'
import { relativeTo, type Shell, shortPath } from '../kit.ts'
import { load } from '../load.ts'
import { oneLine, printable } from '../table.ts'
import {
  type CheckContext,
  type CheckFinding,
  type CheckResult,
  type Findings,
  ok,
  privateFile,
  problem,
  warning,
} from './finding.ts'

/** The configuration, which may be invalid, and its problems. */
export interface DoctorContext {
  /** The configuration, loaded as if missing variables were set. Undefined if it has other problems. */
  readonly loaded: LoadedConfig | undefined
  readonly problems: readonly ConfigProblem[]
  /** The configuration in `loaded` or, if that is undefined, one with only the valid servers. */
  readonly understood: Config | undefined
  /** Secrets from files, commands and variables. */
  readonly secrets: readonly string[]
  /** Variables that are not set, each with the key of the setting that needs it. */
  readonly unset: readonly { readonly key: string; readonly variable: string }[]
}

/** Reads the configuration. If it is invalid, the other checks still run. */
export async function readContext(shell: Shell, options: CommonOptions): Promise<DoctorContext> {
  const outcome = await read(shell, options)
  const usable = outcome.loaded ? outcome : await readValidServers(shell, options)
  return {
    ...outcome,
    understood: usable?.loaded?.config,
    secrets: usable?.loaded?.secrets ?? [],
    unset: (usable?.problems ?? []).flatMap((problem) => {
      const variable = unsetVariable(problem)
      return variable === undefined ? [] : [{ key: problem.key, variable }]
    }),
  }
}

async function read(shell: Shell, options: CommonOptions): Promise<Pick<DoctorContext, 'loaded' | 'problems'>> {
  try {
    return { loaded: await load(shell, options), problems: [] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { loaded: await readAsIfSet(error, shell, options), problems: error.problems }
  }
}

/** Placeholder for variables that are not set. It is also valid as a URL. */
const placeholder = 'http://unset.invalid/'

/** Loads with placeholders for missing variables, to check the other servers; undefined if there are other problems. */
async function readAsIfSet({ problems }: ConfigError, shell: Shell, options: CommonOptions) {
  const unset = problems.map(unsetVariable)
  if (unset.includes(undefined)) return undefined
  const env = { ...shell.env, ...Object.fromEntries(unset.map((name) => [name, placeholder])) }
  return load({ ...shell, env }, options).catch((error: unknown) => {
    if (error instanceof ConfigError) return undefined
    throw error
  })
}

/** The name of the missing variable, if the problem is a variable that is not set. */
const unsetVariable = ({ message }: ConfigProblem): string | undefined =>
  /^the variable (\w+) is not set/.exec(message)?.[1]

/** Writes an invalid configuration's valid servers to a temporary file, and reads that; undefined if there are none. */
async function readValidServers(shell: Shell, { config = [] }: CommonOptions) {
  const { env, cwd } = shell
  const home = homeOf(env)
  const { paths } = await locate(config, env, cwd)
  const files = await Promise.all(paths.map((path) => readServers(path, home)))
  const valid = files
    .flatMap(({ path, servers }) => servers.map((server) => ({ ...server, runs: runsCommands(path, config, env) })))
    // The temporary file is named, so commands in it run; those that would not run where they were found must not.
    .filter(
      ({ problems, definition, runs }) => problems.length === 0 && (runs || !schemesIn(definition).includes('exec')),
    )
  if (valid.length === 0) return undefined
  const entries = valid.map(({ name, definition, impliedFolder: cwd }) => [
    name,
    cwd ? { cwd: escapeVariables(cwd), ...definition } : definition,
  ])
  const mcpServers = Object.fromEntries(entries)
  await using folder = await mkdtempDisposable(join(tmpdir(), 'toolway-doctor-'))
  const path = join(folder.path, 'toolway.json')
  await writeFile(path, JSON.stringify({ mcpServers }), { mode: 0o600 })
  return await read(shell, { config: [path] })
}

/** How many problems are listed; further ones are only counted. */
const maxProblems = 20

/** Reports the configuration files and the configuration's problems and warnings. */
export const configurationFindings = ({ problems, loaded }: DoctorContext, shell: Shell): CheckFinding[] =>
  problems.length > 0 ? invalidFindings(problems, shell) : validFindings(loaded!, shell)

function invalidFindings(problems: readonly ConfigProblem[], shell: Shell): CheckFinding[] {
  const shown = problems.slice(0, maxProblems).map((one) => invalidFinding(one, shell))
  const rest = problems.length - shown.length
  const validate = `${shell.command} validate`
  return rest > 0 ? [...shown, problem(`${pluralize(rest, 'problem')} more`, validate)] : shown
}

function invalidFinding(found: ConfigProblem, shell: Shell): CheckFinding {
  const { file, line, column, key, message } = found
  const place = [shortPath(file, shell), line, column].filter((part) => part !== undefined).join(':')
  const variable = unsetVariable(found)
  const fix = line === undefined ? `ls -l ${shellQuote(file)}` : `fix ${place}, then: ${shell.command} validate`
  const remedy = variable === undefined ? fix : `export ${variable}=…`
  return problem([place, key, message].filter((part) => part !== '').join(': '), remedy)
}

function validFindings({ config, files, warnings }: LoadedConfig, shell: Shell): CheckFinding[] {
  const command = shell.command
  const read = files.map(({ path }) => shortPath(path, shell)).join(', ')
  const servers = pluralize(Object.keys(config.mcpServers).length, 'server')
  const agents = pluralize(Object.keys(config.agents).length, 'agent')
  const found =
    files.length === 0
      ? ok('no file was found, so defaults apply', `${command} init`)
      : ok(`${read} is valid: ${servers}, ${agents}`)
  const doubts = [...warnings, ...policyWarnings(config)].map((text) => warning(relativeTo(text, shell.cwd)))
  return [found, ...doubts]
}

/** Loads the plugins as a gateway would: one that cannot be loaded keeps it from starting. */
export async function pluginFindings(
  { native: { plugins } }: Config,
  probe: (paths: readonly string[]) => Promise<readonly string[]>,
  { command }: CheckContext,
): Promise<Findings> {
  if (plugins.length === 0) return []
  const problems = await probe(plugins)
  if (problems.length > 0) return problems.map((message) => problem(message, `${command} validate`))
  return ok(`${pluralize(plugins.length, 'plugin')} can be loaded`)
}

/** A redactor for the secrets in the configuration and for the generated token. */
export async function redactorFor({ understood: config, secrets }: DoctorContext): Promise<Redactor> {
  if (config === undefined) return createRedactor({ secrets: [], keys: [] })
  const { text } = await privateFile(join(config.stores.common, 'token'), 'the token', { short: String })
  const known = secretsOf(config, secretSettings(config), [...secrets, text ?? ''])
  return createRedactor({ secrets: known, keys: config.audit.redact })
}

/**
 * Removes known secrets and control characters from all findings. It removes nothing else, because text from servers is
 * already redacted, and a remedy that names `token:` must stay readable.
 */
export const concealer =
  ({ known }: Redactor) =>
  ({ message, remedy, details, findings, ...rest }: CheckResult): CheckResult => {
    const clean = (text: string) => String(known(text) ?? '')
    return {
      ...rest,
      message: oneLine(clean(message)),
      remedy: remedy === undefined ? undefined : printable(clean(remedy)),
      details: details?.map((line) => oneLine(clean(line))),
      findings: findings?.map((finding) => ({ ...finding, message: oneLine(clean(finding.message)) })),
    }
  }
