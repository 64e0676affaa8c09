import type { Config } from '../../config/schema.ts'
import { connectPostgres, reasonOf } from '../../stores/postgres/connection.ts'
import { numberOf, wantedNumber } from '../../stores/postgres/migrations.ts'
import { type Check, ok, problem, warning } from './finding.ts'

/** Whether PostgreSQL can be used, where it is configured: without it, audit records wait on this machine. */
export function postgresChecks({ stores: { postgres: configured } }: Config, command: string): Check[] {
  if (!configured || configured.disabled) return []
  const check: Check = {
    name: 'stores.postgres',
    async run() {
      await using postgres = await connectPostgres({ url: configured.url })
      const { where } = postgres
      try {
        const number = await numberOf(postgres)
        if (number >= wantedNumber) return ok(`${where} answers, and its tables are up to date`)
        const behind = `${where} answers; its tables are not those of this version`
        return configured.migrate === 'auto'
          ? ok(`${behind}, and are made at the next start`)
          : problem(behind, `${command} migrate`)
      } catch (cause) {
        return warning(
          `${where} cannot be used (${reasonOf(cause)}): audit records wait on this machine`,
          'stores.postgres.url: postgres://USER@HOST/DATABASE',
        )
      }
    },
  }
  return [check]
}
