import { systemClock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { createLazy } from '../../lib/memoize.ts'
import { pluralize } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { openOAuth } from '../../runtime/oauth-sign-in.ts'
import { createServerProber, probePlugins, probeSandbox, type ServerProber } from '../../runtime/probe-server.ts'
import type { OptionsOf } from '../command-table.ts'
import {
  createOutput,
  createProgress,
  type ExitCode,
  exit,
  type Output,
  type ProgressLine,
  type Shell,
  shortPath,
  UsageError,
} from '../kit.ts'
import { openLog } from '../load.ts'
import { askRunning, type RunningGateway } from '../running-gateway.ts'
import { took } from '../table.ts'
import { chainFindings, clockFinding, findLogHolders, readLaneEnds } from './audit.ts'
import {
  concealer,
  configurationFindings,
  type DoctorContext,
  pluginFindings,
  readContext,
  redactorFor,
} from './configuration.ts'
import { keyFindings, secretFileFindings, tokenFinding } from './credentials.ts'
import { clientFindings, openFilesFindings, sandboxFinding } from './environment.ts'
import {
  type CheckContext,
  type CheckFinding,
  type CheckResult,
  type CheckStatus,
  chownCommand,
  type DoctorCheck,
  type DoctorChecks,
  ok,
  problem,
  warning,
} from './finding.ts'
import { portFinding } from './port.ts'
import { agentFindings, serverChecks } from './servers.ts'
import { postgresFindings, redisFindings, storeFolderFindings, storeSpaceFinding } from './stores.ts'

/** Checks everything that a gateway needs; each problem comes with a remedy (B11). */
export async function doctor(shell: Shell, options: OptionsOf<'doctor'>): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const startedAt = performance.now()
  const context = await readContext(shell, options)
  const redactor = await redactorFor(context)
  const log = openLog(shell, options.log ?? 'silent')
  const { understood } = context
  await using oauth = understood && (await openOAuth(understood, { clock: systemClock, log }))
  await using prober = createServerProber({
    redact: redactor.text,
    oauth,
    limits: understood?.discovery,
    clock: systemClock,
    log,
  })
  const probes: Probes = {
    servers: prober,
    running: context.loaded && (await askRunning(shell, context.loaded.config, options)),
    plugins: (paths) => probePlugins(paths, { conceal: redactor.line, clock: systemClock, log }),
  }
  const found = await runWithProgress(checksFor(context, probes, log, shell, options), shell)
  const checks = found.map(concealer(redactor))
  const isFine = !checks.some(({ status }) => status === 'problem' || (options.strict && status === 'warning'))
  if (options.json) output.value({ checks, ok: isFine })
  else printChecks(checks, performance.now() - startedAt, output)
  return isFine ? exit.ok : exit.unwell
}

async function runWithProgress(checks: DoctorChecks, shell: Shell): Promise<CheckResult[]> {
  using progress = createProgress(shell)
  return await runChecks(checks, { progress, signal: shell.interrupted, command: shell.command })
}

interface Probes {
  readonly servers: ServerProber
  /** Knows servers that need not be started again. */
  readonly running: RunningGateway | undefined
  plugins(paths: readonly string[]): Promise<readonly string[]>
}

function checksFor(
  context: DoctorContext,
  { servers: prober, running, plugins }: Probes,
  log: Log,
  shell: Shell,
  { server: only, timeout: withinMs }: OptionsOf<'doctor'>,
): DoctorChecks {
  const { loaded } = context
  if (only !== undefined) requireServer(only, context)
  const { command, env } = shell
  const servers = serverChecks({ context, only, prober, running, withinMs, env, command })
  const first: DoctorChecks = {
    // An older version than Toolway needs does not get this far (`main.ts`).
    node: () => ok(`Node ${process.versions.node}`),
    configuration: () => configurationFindings(context, shell),
  }
  const clients = () => clientFindings(shell)
  if (only !== undefined) return { ...first, ...servers.checks }
  if (loaded === undefined) return { ...first, rest: () => skippedChecks, ...servers.checks, clients }
  const { config } = loaded
  const given: CheckContext = { command, clock: systemClock, short: (path) => shortPath(path, shell) }
  // Two checks need the newest records, so read them only once.
  const laneEnds = createLazy(() => readLaneEnds(config))
  return {
    ...first,
    plugins: () => pluginFindings(config, plugins, given),
    port: (signal) => portFinding(config, given, signal),
    'credentials.token': () => tokenFinding(config, given),
    'credentials.keys': () => keyFindings(config, given),
    'credentials.files': () => secretFileFindings(loaded, given),
    'stores.folder': () => storeFolderFindings(config, given),
    'stores.space': () => storeSpaceFinding(config),
    'audit.lock': () => findLogHolders(config, given),
    'audit.chain': async () => chainFindings(await laneEnds.get(), given),
    clock: async () => clockFinding(await laneEnds.get(), given),
    'stores.postgres': () => postgresFindings(config, given),
    'open-files': () => openFilesFindings(config.mcpServers),
    'stores.redis': () => redisFindings(config),
    ...servers.checks,
    // This check runs after the server checks, because it waits for the servers' tools.
    agents: () => agentFindings(config, servers.tools, given),
    sandbox: () => sandboxFinding(config.sandbox, () => probeSandbox(config.sandbox, { clock: systemClock, log })),
    clients,
  }
}

/** Throws if a valid configuration does not define this server; the servers in an invalid one are unknown. */
function requireServer(server: string, { loaded }: DoctorContext): void {
  const names = Object.keys(loaded?.config.mcpServers ?? {})
  if (loaded === undefined || names.includes(server)) return
  throw new UsageError(`There is no server ${server} in the configuration${didYouMean(server, names)}`)
}

const skippedChecks = warning(
  'port, credentials, stores and sandbox were not checked: these checks need a valid configuration',
)

/** How many checks run at once. Many start a server process, and more processes would only slow each other down. */
const atOnce = 8

interface RunOptions {
  readonly progress: ProgressLine
  readonly signal: AbortSignal
  readonly command: string
}

/** Runs checks in parallel; returns the results in the order of the checks. */
export async function runChecks(checks: DoctorChecks, options: RunOptions): Promise<CheckResult[]> {
  const { progress, signal } = options
  const entries = Object.entries(checks)
  const found: CheckResult[][] = entries.map(() => [])
  const pending = new Set<string>()
  const waiting = entries.entries()

  const work = async (): Promise<void> => {
    for (const [index, [name, check]] of waiting) {
      signal.throwIfAborted()
      pending.add(name)
      progress.show(`Checking ${[...pending].join(', ')} …`)
      found[index] = await runCheck(name, check, options)
      pending.delete(name)
      progress.show(`Checking ${[...pending].join(', ')} …`)
    }
  }
  // Wait for all checks even if one fails, so that no process that a check started is still running afterwards.
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, work))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return found.flat()
}

async function runCheck(name: string, check: DoctorCheck, { signal, command }: RunOptions): Promise<CheckResult[]> {
  const begun = performance.now()
  const run = async () => check(signal)
  const findings = await run().catch((thrown: unknown): CheckFinding => {
    signal.throwIfAborted()
    const { code, path } = (thrown ?? {}) as NodeJS.ErrnoException
    if (code === 'EACCES' && path !== undefined)
      return problem(`not checked: no permission to read ${path}`, chownCommand(path, '-R'))
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    return problem(`check failed: ${why}`, `${command} doctor --log debug`)
  })
  const ms = Math.round(performance.now() - begun)
  return [findings].flat().map((finding) => ({ name, ...finding, ms }))
}

const signs: Readonly<Record<CheckStatus, string>> = { ok: '✓', warning: '!', problem: '✗' }
const colours = { ok: 'green', warning: 'yellow', problem: 'red' } as const

/** Prints one line per finding, the remedy below it, and a summary. */
function printChecks(checks: readonly CheckResult[], ms: number, { print, paint }: Output): void {
  const width = Math.max(0, ...checks.map(({ name }) => name.length))
  for (const { name, status, message, remedy, details = [] } of checks) {
    const indent = ' '.repeat(width + 4)
    print(`${paint(colours[status], signs[status])} ${paint('dim', name.padEnd(width))}  ${message}`)
    for (const line of details) print(paint('dim', `${indent}│ ${line}`))
    if (remedy !== undefined) print(`${indent}→ ${status === 'ok' ? paint('dim', remedy) : paint('cyan', remedy)}`)
  }
  const number = (wanted: CheckStatus) => checks.filter(({ status }) => status === wanted).length
  const [problems, warnings] = [number('problem'), number('warning')]
  const verdict =
    problems + warnings === 0
      ? paint('green', 'No problems found.')
      : paint(problems > 0 ? 'red' : 'yellow', `${pluralize(problems, 'problem')}, ${pluralize(warnings, 'warning')}.`)
  print('')
  print(`${verdict} ${paint('dim', `${pluralize(checks.length, 'line')} in ${took(ms)}`)}`)
}
