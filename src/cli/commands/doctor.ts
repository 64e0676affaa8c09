import type { LoadedConfig } from '../../config/load.ts'
import { systemClock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { didYouMean } from '../../core/near.ts'
import { openOAuth } from '../../runtime/oauth-sign-in.ts'
import { createServerProber, probeSandbox, type ServerProber } from '../../runtime/probe-server.ts'
import { createLog } from '../../telemetry/log.ts'
import { agentCheck } from '../doctor/agents.ts'
import { auditChecks, auditLockCheck } from '../doctor/audit.ts'
import { clientCheck } from '../doctor/clients.ts'
import { concealer, redactorFor } from '../doctor/conceal.ts'
import { configurationCheck } from '../doctor/configuration.ts'
import { type Check, type Checked, warning } from '../doctor/finding.ts'
import { keyCheck } from '../doctor/keys.ts'
import { nodeCheck } from '../doctor/node.ts'
import { portCheck } from '../doctor/port.ts'
import { postgresChecks } from '../doctor/postgres.ts'
import { printChecks } from '../doctor/print.ts'
import { runChecks } from '../doctor/run-checks.ts'
import { sandboxCheck } from '../doctor/sandbox.ts'
import { secretFilesCheck } from '../doctor/secret-files.ts'
import { serverChecks } from '../doctor/servers.ts'
import { type Situation, situationOf } from '../doctor/situation.ts'
import { storeFolderCheck } from '../doctor/store-folders.ts'
import { storeSpaceCheck } from '../doctor/store-space.ts'
import { tokenCheck } from '../doctor/token.ts'
import { type ExitCode, exit } from '../exit.ts'
import { short } from '../home.ts'
import type { CommonOptions } from '../load.ts'
import { createOutput } from '../output.ts'
import { createProgress } from '../progress.ts'
import { type Shell, spelling } from '../shell.ts'
import { UsageError } from '../usage.ts'

export interface DoctorOptions extends CommonOptions {
  /** This one alone. */
  readonly server?: string
  /** For each server. */
  readonly timeout: number
  /** Whether warnings count as problems. */
  readonly strict?: boolean
}

/** Looks at everything that a gateway needs, and says what is wrong and what to do about it (B11). */
export async function doctor(shell: Shell, options: DoctorOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const begun = performance.now()
  const situation = await situationOf(shell, options)
  const redactor = await redactorFor(situation)
  const log = createLog({
    level: options.log ?? 'silent',
    destination: shell.stderr,
    pretty: shell.stderr.isTTY === true,
  })
  const { understood } = situation
  await using oauth = understood && (await openOAuth(understood, { clock: systemClock, log }))
  await using examiner = createServerProber({ redact: redactor.text, oauth, clock: systemClock, log })
  const found = await looked(checksFor(situation, { examiner, log }, shell, options), shell)
  const checks = found.map(concealer(redactor))
  const fine = !checks.some(({ status }) => status === 'problem' || (options.strict && status === 'warning'))
  if (options.json) output.value({ checks, ok: fine })
  else printChecks(checks, performance.now() - begun, output)
  return fine ? exit.ok : exit.unwell
}

/** What it looks with. */
interface Means {
  readonly examiner: ServerProber
  readonly log: Log
}

async function looked(checks: readonly Check[], shell: Shell): Promise<Checked[]> {
  using progress = createProgress(shell)
  return await runChecks(checks, { progress, signal: shell.interrupted, command: spelling(shell.env) })
}

function checksFor(situation: Situation, { examiner, log }: Means, shell: Shell, options: DoctorOptions): Check[] {
  const { loaded } = situation
  const { server: only, timeout: withinMs } = options
  if (only !== undefined) refuseUnknown(only, situation)
  const servers = serverChecks({ situation, only, examiner, withinMs, env: shell.env })
  const command = spelling(shell.env)
  const first = [nodeCheck, configurationCheck(situation, shell)]
  if (only !== undefined) return [...first, ...servers.checks]
  if (loaded === undefined) return [...first, unlooked, ...servers.checks, clientCheck(shell)]
  const { config } = loaded
  return [
    ...first,
    portCheck(config, { command, clock: systemClock }),
    ...keptChecks(loaded, shell),
    ...servers.checks,
    // After the servers, which it waits for: the checks before it are under way by then.
    agentCheck(config, servers.tools, command),
    sandboxCheck(config.sandbox, () => probeSandbox(config.sandbox, { clock: systemClock, log })),
    clientCheck(shell),
  ]
}

/** Of a configuration that cannot be used, nobody knows what is in it. */
function refuseUnknown(server: string, { loaded }: Situation): void {
  const names = Object.keys(loaded?.config.mcpServers ?? {})
  if (loaded === undefined || names.includes(server)) return
  throw new UsageError(`There is no server ${server} in the configuration${didYouMean(server, names)}`)
}

/** What the gateway keeps and shows. */
function keptChecks(loaded: LoadedConfig, shell: Shell): Check[] {
  const { config } = loaded
  const shown = (path: string) => short(path, shell)
  const around = { command: spelling(shell.env), clock: systemClock }
  return [
    tokenCheck(config, shown),
    keyCheck(config, around),
    secretFilesCheck(loaded, shown),
    storeFolderCheck(config, shown),
    storeSpaceCheck(config),
    auditLockCheck(config, shown),
    ...auditChecks(config, around),
    ...postgresChecks(config, around.command),
  ]
}

const unlooked: Check = {
  name: 'rest',
  run: async () =>
    warning('port, credentials, stores and sandbox were not checked: only a valid configuration says which'),
}
