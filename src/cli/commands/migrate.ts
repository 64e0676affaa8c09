import { ToolwayError } from '../../core/errors.ts'
import { connectPostgres, postgresErrorReason } from '../../stores/postgres/connection.ts'
import { type MigrationResult, migrate } from '../../stores/postgres/migrations.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, type Shell, UsageError } from '../kit.ts'
import { load } from '../load.ts'

export async function migrateDatabase(shell: Shell, options: OptionsOf<'migrate'>): Promise<void> {
  const { dryRun = false } = options
  const output = createOutput(shell, options.json)
  const { postgres: configured } = (await load(shell, options)).config.stores
  if (!configured || configured.disabled) {
    throw new UsageError('PostgreSQL is not configured: there is nothing to migrate.', 'Set stores.postgres.url.')
  }
  await using postgres = await connectPostgres(configured.url)
  const { where } = postgres
  const done = await migrate(postgres, { dryRun }).catch((cause) => {
    const message = `${where} could not be migrated: ${postgresErrorReason(cause)}.`
    throw new ToolwayError('SERVER_UNAVAILABLE', message, { cause })
  })
  if (options.json) output.value({ database: where, dryRun, ...done })
  else for (const line of linesOf(done, where, dryRun)) output.print(line)
}

function linesOf({ to, applied }: MigrationResult, where: string, dryRun: boolean): string[] {
  if (applied.length === 0) return [`${where} is up to date (version ${to}).`]
  return [
    ...applied.map(({ number, name }) => `${dryRun ? 'would apply' : 'applied'} ${number} ${name}`),
    `${where} ${dryRun ? 'would be' : 'is now'} at version ${to}.`,
  ]
}
