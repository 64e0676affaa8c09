import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { called, type FoundServer, type ImportPlan, type PlannedServer, planImport } from '../../clients/import-plan.ts'
import { fileSecretStore, filesIn, variableSecretStore, variablesIn, writeSecrets } from '../../clients/secrets.ts'
import type { NewServer } from '../../config/edit/servers-text.ts'
import type { ServerDefinition } from '../../config/import/read-servers.ts'
import { readSecretFile } from '../../config/interpolate.ts'
import { folder } from '../../config/locate.ts'
import { inHome } from '../../config/paths.ts'
import type { ConfigProblem } from '../../config/problems.ts'
import { homeOf } from '../../core/home.ts'
import { findSecrets } from '../find-secrets.ts'
import { type Output, type Shell, shortPath, tildePath } from '../kit.ts'

/** Where secrets go: into private files, or into variables that the user sets. */
export type SecretStorage = 'file' | 'env'

/** A planned import that has not been written yet. */
export interface PreparedImport extends ImportPlan {
  /** Writes the secret files that the new configuration refers to. */
  writeSecrets(): Promise<void>
  /** The folder for the secret files, as shown to the user. */
  readonly secretsFolder: string
  /** Variables that the servers require but that are not set. */
  readonly unset: readonly string[]
}

/** Plans an import: what is added, and where its secrets go. */
export async function prepareImport(
  { env }: Pick<Shell, 'env'>,
  found: readonly FoundServer[],
  known: ReadonlyMap<string, ServerDefinition>,
  secrets: SecretStorage,
): Promise<PreparedImport> {
  const home = homeOf(env)
  const place = join(folder(env.XDG_CONFIG_HOME, join(home, '.config')), 'toolway', 'secrets')
  const secretsFolder = tildePath(place, home)
  const files = fileSecretStore(place, secretsFolder)
  const { keep } = secrets === 'file' ? files : variableSecretStore()
  const unset = (value: unknown) => variablesIn(value).filter((variable) => env[variable] === undefined)
  const missing = (definition: ServerDefinition) => [...unset(definition), ...missingFiles(definition, home)]
  const plan = await planImport(found, { known, find: findSecrets, keep, missing })
  return {
    ...plan,
    secretsFolder,
    unset: unset(plan.added.map(({ definition }) => definition)),
    writeSecrets: () => writeSecrets(files.files),
  }
}

/** Files that a server refers to but that cannot be read. */
function missingFiles(definition: ServerDefinition, home: string): string[] {
  const absolute = (path: string) => inHome(path, home) ?? path
  const { envFile } = definition
  const variables = typeof envFile === 'string' && !envFile.includes('${') ? [absolute(envFile)] : []
  const secrets = filesIn(definition).map(absolute)
  return [
    ...variables.filter((path) => !existsSync(path)),
    ...secrets.filter((path) => 'fault' in readSecretFile(path)),
  ].map((path) => `the file ${tildePath(path, home)}`)
}

/** A server as it will be written, with a comment on where it comes from and why it is disabled. */
export const asWritten = ({ name, definition, origins, waiting }: PlannedServer): NewServer => ({
  name,
  definition,
  comment: [
    `from ${[...new Set(origins.map(called))].join(', ')}`,
    ...(waiting.length > 0 ? [disabledReason(waiting)] : []),
  ].join('; '),
})

export const disabledReason = (waiting: readonly string[]): string => `disabled because it needs ${waiting.join(', ')}`

/** Prints what was done with the servers and their secrets. */
export function noteOf(prepared: PreparedImport, { note, warn }: Output, secrets: SecretStorage): void {
  for (const line of prepared.notes) note(line)
  if (prepared.secrets > 0 && secrets === 'file') {
    note(`Secrets (${prepared.secrets}) are stored in ${prepared.secretsFolder}, which only you can read.`)
  }
  for (const { name, waiting } of prepared.added) {
    if (waiting.length > 0)
      warn(`${name} is ${disabledReason(waiting)}. Provide what is missing, then remove \`disabled\`.`)
  }
  const mine = prepared.unset.filter((name) => prepared.added.every(({ waiting }) => !waiting.includes(name)))
  if (mine.length > 0) warn(`Set ${mine.join(', ')} before you start Toolway.`)
}

interface WithProblems {
  readonly problems: readonly ConfigProblem[]
}

/** The problems with a file and with its servers. */
export const allProblems = ({ problems, servers }: WithProblems & { servers: readonly WithProblems[] }) => [
  ...problems,
  ...servers.flatMap((server) => server.problems),
]

export function warnOfProblems(problems: readonly ConfigProblem[], { warn }: Output, shell: Shell): void {
  for (const { file, line, key, message } of problems) {
    const place = `${shortPath(file, shell)}${line === undefined ? '' : `:${line}`}`
    warn(`${place}: ${key === '' ? '' : `${key}: `}${message}; skipped`)
  }
}
