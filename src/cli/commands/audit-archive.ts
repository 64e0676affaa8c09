import type { Archive } from '../../core/audit-archive.ts'
import { ToolwayError } from '../../core/errors.ts'
import { archiveOf } from '../../stores/postgres/archive.ts'
import { connectPostgres, placeOf, reasonOf } from '../../stores/postgres/connection.ts'
import { type CommonOptions, load } from '../load.ts'
import type { Shell } from '../shell.ts'
import { UsageError } from '../usage.ts'
import type { PlaceOptions } from './audit-options.ts'

/** Where the records of all replicas are. */
export interface ConfiguredArchive {
  /** Its address without the credentials. */
  readonly where: string
  /** Opens it for one question; throws what PostgreSQL threw. */
  ask<T>(question: (archive: Archive) => Promise<T>): Promise<T>
}

/** The archive of the configuration; none where there is none, or where another log is meant. */
export async function configuredArchive(
  shell: Shell,
  options: CommonOptions & PlaceOptions,
): Promise<ConfiguredArchive | undefined> {
  if (options.path !== undefined) return undefined
  const { postgres } = (await load(shell, options)).config.stores
  if (!postgres || postgres.disabled) return undefined
  const { url } = postgres
  return {
    where: placeOf(url),
    async ask(question) {
      await using connection = await connectPostgres({ url })
      return await question(archiveOf(connection))
    },
  }
}

async function wantedArchive(shell: Shell, options: CommonOptions & PlaceOptions): Promise<ConfiguredArchive> {
  if (options.path !== undefined) throw new UsageError('--path names a log on disk; it does not go with --postgres.')
  const archive = await configuredArchive(shell, options)
  if (archive) return archive
  throw new UsageError('No PostgreSQL is configured.', 'Set stores.postgres.url, or leave --postgres out.')
}

/**
 * Asks the records of all replicas, for those who asked for them by name: where they cannot be asked, the log of this
 * machine is no answer.
 */
export async function askReplicas<T>(
  shell: Shell,
  options: CommonOptions & PlaceOptions,
  question: (archive: Archive, where: string) => Promise<T>,
): Promise<T> {
  const { where, ask } = await wantedArchive(shell, options)
  return ask((archive) => question(archive, where)).catch((cause) => {
    if (shell.interrupted.aborted || cause instanceof ToolwayError || cause instanceof UsageError) throw cause
    throw new ToolwayError('SERVER_UNAVAILABLE', `${where} could not be read: ${reasonOf(cause)}.`, { cause })
  })
}
