import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { secretsOf } from '../../audit/redact/secrets.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { secretSettings } from '../../config/schema-lookup.ts'
import { hasShortToken, minTokenLength } from '../../config/warnings.ts'
import { commandLine, pluralize, shellQuote } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { isLoopback } from '../../lib/url.ts'
import { KeyFileProblem, keyFile, readKeyFile, type StoredKey } from '../../stores/key-file.ts'
import { span } from '../table.ts'
import {
  type CheckContext,
  type CheckFinding,
  type Findings,
  findingsOr,
  octal,
  ok,
  privateFile,
  problem,
  warning,
} from './finding.ts'

/** Checks the token that callers need: it must be stored, private, and required if other machines can connect. */
export async function tokenFinding(config: Config, context: CheckContext): Promise<CheckFinding> {
  const { token } = config.auth
  if (token === 'none') return openFinding(config)
  if (token === 'generated') return keptFinding(config, context)
  if (!hasShortToken(config)) return ok('set in the configuration')
  return warning(`has fewer than ${minTokenLength} characters and could be guessed`, 'auth.token: generated')
}

function openFinding({ auth, server: { host } }: Config): CheckFinding {
  if (isLoopback(host)) return ok(`none is required; only this machine can reach ${host}`)
  const remedy = 'auth.token: generated'
  const identified = auth.keys.length > 0 || (auth.jwt !== undefined && !auth.jwt.disabled)
  const message = `none is required, and server.host is ${host}: anyone who can reach this machine may use`
  return identified ? warning(`${message} the default agent's tools`, remedy) : problem(`${message} every tool`, remedy)
}

async function keptFinding({ stores }: Config, context: CheckContext): Promise<CheckFinding> {
  const { short } = context
  const path = join(stores.common, 'token')
  const { finding, text } = await privateFile(path, 'the token', context)
  if (finding) return finding
  if (text === undefined) return ok('will be generated at the first start')
  if (text.length >= minTokenLength) return ok(`stored in ${short(path)}, readable only by its owner`)
  return problem(
    `${short(path)} does not contain a token`,
    `rm ${shellQuote(path)}   # the next start generates a new one`,
  )
}

/** How long before a key's expiry a warning is shown, so that there is time to replace the key. */
const expiryWarningMs = 7 * 24 * 60 * 60 * 1000

/** Checks that the API keys can be read, have not expired, and are for existing agents. */
export async function keyFindings(config: Config, context: CheckContext): Promise<Findings> {
  const path = config.stores.path
  try {
    const stored = readKeyFile(path)
    const findings = stored.flatMap((key) => findingsAbout(key, config, context))
    const number = stored.length + config.auth.keys.length
    return findingsOr(findings, ok(number === 0 ? 'no API keys' : `${pluralize(number, 'API key')}, none expired`))
  } catch (error) {
    if (!(error instanceof KeyFileProblem)) throw error
    const closed = error.message.includes('chmod 600')
    const remedy = closed ? `chmod 600 ${shellQuote(keyFile(path))}` : `ls -l ${shellQuote(keyFile(path))}`
    return problem(`no key in the key file is accepted: ${error.message}`, remedy)
  }
}

function findingsAbout(key: StoredKey, { agents }: Config, { command, clock }: CheckContext): CheckFinding[] {
  const { id, expires } = key
  const left = expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires) - clock.now()
  const known = Object.keys(agents)
  const strangers = key.agents.filter((agent) => agent !== '*' && known.length > 0 && !known.includes(agent))
  const renewed = `${command} keys revoke ${id} && ${renewal(key, command)}`
  return [
    ...(left <= 0 ? [warning(`the key ${id} expired on ${expires?.slice(0, 10)}`, renewed)] : []),
    ...(left > 0 && left <= expiryWarningMs ? [warning(`the key ${id} expires in ${span(left)}`, renewed)] : []),
    ...strangers.map((agent) => {
      const message = `the key ${id} is for ${agent}, an agent that does not exist${didYouMean(agent, known, '')}`
      return warning(message, `${command} keys revoke ${id}`)
    }),
  ]
}

/** The command that creates a new key with the same agents and rights. */
const renewal = ({ id, agents, admin }: StoredKey, command: string): string =>
  `${command} ${commandLine(['keys', 'create', id, ...agents.flatMap((agent) => ['--agent', agent]), ...(admin ? ['--admin'] : []), '--expires', '90d'])}`

/** Checks that other secret files, and configuration files that contain secrets, are private. */
export async function secretFileFindings({ config, files }: LoadedConfig, context: CheckContext): Promise<Findings> {
  const { path: folder } = config.stores
  const privateFiles = await Promise.all([
    privateFile(join(folder, 'seal'), 'the key that encrypts call state', context),
    privateFile(join(folder, 'audit-key'), "the audit log's signing key", context),
  ])
  const secrets = secretsOf(config, secretSettings(config))
  const readable = await Promise.all(files.map(({ path }) => readableSecrets(path, context.short(path), secrets)))
  const found = [...privateFiles.map(({ finding }) => finding), ...readable]
  return findingsOr(found, ok('secrets are readable only by their owner'))
}

async function readableSecrets(path: string, shown: string, secrets: readonly string[]) {
  const { mode } = await stat(path)
  if (process.platform === 'win32' || (mode & 0o044) === 0) return undefined
  const text = await readFile(path, 'utf8')
  if (!secrets.some((secret) => text.includes(secret))) return undefined
  const message = `${shown} contains secrets and is readable by others (mode ${octal(mode)})`
  return warning(message, `chmod 600 ${shellQuote(path)}`)
}
