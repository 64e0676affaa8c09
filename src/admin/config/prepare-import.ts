import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { called, type FoundServer, type PlannedServer, planImport } from '../../clients/import-plan.ts'
import {
  fileSecretStore,
  filesIn,
  mapTexts,
  variableSecretStore,
  variablesIn,
  writeSecrets,
} from '../../clients/secrets.ts'
import type { NewServer } from '../../config/edit/edit-text.ts'
import type { ServerDefinition } from '../../config/import/read-servers.ts'
import { type EnvVars, expand, readSecretFile } from '../../config/interpolate.ts'
import { inHome } from '../../config/paths.ts'
import { configHome, homeOf, tildePath } from '../../core/home.ts'
import { findSecrets } from './find-secrets.ts'

/** Where secrets go: into private files, or into variables that the user sets. */
export type SecretStorage = 'file' | 'env'

export type PreparedImport = Awaited<ReturnType<typeof prepareImport>>

export async function prepareImport(
  { env }: { readonly env: EnvVars },
  found: readonly FoundServer[],
  known: ReadonlyMap<string, ServerDefinition>,
  secrets: SecretStorage,
) {
  const { files, secretsFolder } = secretFiles(env)
  const { keep } = secrets === 'file' ? files : variableSecretStore()
  const plan = await planImport(found, {
    known,
    find: findSecrets,
    keep,
    missing: missingIn(env),
    resolve: resolveIn(env),
  })
  return {
    ...plan,
    /** The folder for the secret files, as shown to the user. */
    secretsFolder,
    unset: unsetIn(env)(plan.added.map(({ definition }) => definition)),
    /** Writes the secret files that the new configuration refers to. */
    writeSecrets: () => writeSecrets(files.files),
  }
}

const unsetIn = (env: EnvVars) => (value: unknown) =>
  variablesIn(value).filter((variable) => env[variable] === undefined)

/** Returns the variables and files that a definition needs but that are missing. */
export const missingIn =
  (env: EnvVars) =>
  (definition: ServerDefinition): readonly string[] => [...unsetIn(env)(definition), ...missingFiles(definition, env)]

/** Replaces references to variables and files that can be read by their values, in order to compare servers. */
export const resolveIn = (env: EnvVars) => {
  const home = homeOf(env)
  const file = (path: string) => readSecretFile(inHome(path, home) ?? path)
  return (definition: ServerDefinition): ServerDefinition =>
    mapTexts(definition, (text) => {
      const expansion = expand(text, env, { file })
      return 'text' in expansion ? expansion.text : text
    }) as ServerDefinition
}

/** Private files for secrets, in the user's configuration folder. */
export function secretFiles(env: EnvVars) {
  const place = join(configHome(env), 'toolway', 'secrets')
  const secretsFolder = tildePath(place, homeOf(env))
  return { files: fileSecretStore(place, secretsFolder), secretsFolder }
}

/** Files that a server refers to but that cannot be read. */
function missingFiles(definition: ServerDefinition, env: EnvVars): string[] {
  const home = homeOf(env)
  const absolute = (path: string) => inHome(path, home) ?? path
  const { envFile } = definition
  const named = typeof envFile === 'string' ? expand(envFile, env) : undefined
  const variables = named && 'text' in named ? [absolute(named.text)] : []
  const secrets = filesIn(definition).map(absolute)
  return [
    ...variables.filter((path) => !existsSync(path)),
    ...secrets.filter((path) => 'fault' in readSecretFile(path)),
  ].map((path) => `the file ${tildePath(path, home)}`)
}

/** A server as it will be written, with a comment on where it comes from and why it is disabled. */
export const asWritten = (server: PlannedServer): NewServer => ({
  name: server.name,
  definition: server.definition,
  comment: commentOn(server, true),
})

export function commentOn({ origins, waiting }: PlannedServer, isImport: boolean): string | undefined {
  const origin = isImport ? [`from ${[...new Set(origins.map(called))].join(', ')}`] : []
  const reason = waiting.length > 0 ? [disabledReason(waiting)] : []
  return [...origin, ...reason].join('; ') || undefined
}

export const disabledReason = (waiting: readonly string[]): string => `disabled because it needs ${waiting.join(', ')}`
