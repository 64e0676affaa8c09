import type { Archive } from '../../core/audit-archive.ts'
import { archiveOf } from '../../stores/postgres/archive.ts'
import { connectPostgres, placeOf } from '../../stores/postgres/connection.ts'
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

/** For those who asked for it by name. */
export async function wantedArchive(shell: Shell, options: CommonOptions & PlaceOptions): Promise<ConfiguredArchive> {
  if (options.path !== undefined) throw new UsageError('--path names a log on disk; it does not go with --postgres.')
  const archive = await configuredArchive(shell, options)
  if (archive) return archive
  throw new UsageError('No PostgreSQL is configured.', 'Set stores.postgres.url, or leave --postgres out.')
}
