import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parse } from 'yaml'
import { temporaryFolder } from '../fixtures/folders.ts'
import { serverProgram } from '../fixtures/programs.ts'

export type Revision = '2025-11-25' | '2026-07-28'

/** One statement of the suite. Neither id nor name is unique: some are made several times in one scenario. */
export interface Check {
  readonly id: string
  readonly name: string
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED'
  readonly errorMessage?: string
}

export interface ScenarioResult {
  readonly scenario: string
  /** Whether the revision requires it; the others are run and told. */
  readonly required: boolean
  readonly checks: readonly Check[]
}

/** The server to test; or, for the client scenarios, the command that runs a client. */
export type SuiteTarget = { readonly url: string } | { readonly command: string }

export interface SuiteOptions {
  readonly requirements: Revision
  /** The suite's program, if it is not the installed one. */
  readonly suite?: string
  readonly timeoutMs?: number
}

/** Runs all scenarios of a revision and tells every check. */
export async function runSuite(options: SuiteTarget & SuiteOptions): Promise<ScenarioResult[]> {
  const { requirements, suite = installedSuite(), timeoutMs = 60_000 } = options
  await using results = await temporaryFolder()
  const leg = 'url' in options ? 'server' : 'client'
  const aim = 'url' in options ? ['--url', options.url] : ['--command', options.command]
  const common = ['--requirements', requirements, '--timeout', String(timeoutMs), '--output-dir', results.path]
  const said = await output([suite, leg, ...aim, ...common])
  const checks = collect(results.path, leg)
  const required = requiredScenarios(suite, requirements, leg)
  const missing = required.filter((scenario) => !checks.has(scenario))
  // Without its checks a scenario could be taken for passed.
  if (missing.length > 0) throw new Error(`the suite has not run ${missing.join(', ')}: ${said.slice(-2000)}`)
  return [...checks].map(([scenario, found]) => ({ scenario, required: required.includes(scenario), checks: found }))
}

/** Runs one scenario of an extension, which no revision requires. */
export async function runScenario(
  scenario: string,
  { revision, ...target }: SuiteTarget & { readonly revision: Revision },
): Promise<ScenarioResult> {
  await using results = await temporaryFolder()
  const leg = 'url' in target ? 'server' : 'client'
  const aim = 'url' in target ? ['--url', target.url] : ['--command', target.command]
  // An extension is on no revision's timeline, so that the suite runs its scenarios only when forced.
  const version = ['--spec-version', revision, '--force']
  const said = await output([installedSuite(), leg, ...aim, '--scenario', scenario, ...version, '-o', results.path])
  const checks = collect(results.path, leg).get(scenario)
  if (checks === undefined) throw new Error(`the suite has not run ${scenario}: ${said.slice(-2000)}`)
  return { scenario, required: true, checks }
}

/** Its exit code says less than the checks do: with an unmet requirement it is 1, as with a suite that has crashed. */
export async function output(args: string[]): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [said, complained] = await Promise.all([text(child.stdout), text(child.stderr)])
  return said + complained
}

/** The checks by scenario, in the order in which they were made. */
function collect(folder: string, leg: 'server' | 'client'): Map<string, Check[]> {
  const files = globSync('**/checks.json', { cwd: folder }).map((file) => ({ file, ...named(dirname(file), leg) }))
  files.sort((a, b) => (a.time < b.time ? -1 : 1))
  return new Map(files.map(({ file, scenario }) => [scenario, JSON.parse(readFileSync(join(folder, file), 'utf8'))]))
}

/** A result's folder is called after the scenario and the time, e.g. `server-tools-list-2026-11-15T03-54-19-662Z`. */
function named(folder: string, leg: 'server' | 'client') {
  const [, name = folder, time = ''] = /^(.*)-(\d{4}-\d{2}-\d{2}T[\d-]+Z)$/.exec(folder) ?? []
  return { scenario: leg === 'server' ? name.replace(/^server-/, '') : name, time }
}

function requiredScenarios(suite: string, revision: Revision, leg: 'server' | 'client'): string[] {
  const file = join(dirname(suite), '../requirements', `${revision}.yaml`)
  return parse(readFileSync(file, 'utf8'))[leg]
}

/** Of this project, or of the variable CONFORMANCE_BIN, by which another version can be tried. */
export function installedSuite(): string {
  return process.env.CONFORMANCE_BIN ?? serverProgram('conformance-suite')
}
