import { createRedactor } from '../audit/redact/redactor.ts'
import { secretsOf } from '../audit/redact/secrets.ts'
import { openAuditLog } from '../audit/write/audit-log.ts'
import { marksFolder } from '../audit/write/head.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { secretSettings } from '../config/schema-lookup.ts'
import { systemClock } from '../core/clock.ts'
import { osUser } from '../core/home.ts'
import { silentLog } from '../core/log.ts'
import { auditAction } from '../runtime/audit-events.ts'
import { version } from '../runtime/package-paths.ts'
import { keptAuditKey } from '../stores/secret-file.ts'

/** Redacts the secrets of a configuration, and the values of `keys`. */
export const redactorOf = ({ config, secrets }: Pick<LoadedConfig, 'config' | 'secrets'>, keys = config.audit.redact) =>
  createRedactor({ secrets: secretsOf(config, secretSettings(config), secrets), keys })

interface Change {
  readonly operation: 'create_key' | 'rotate_key' | 'revoke_key' | 'approve_pins' | 'undo_config' | 'forget_searches'
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Makes a change and audits it, in a separate lane because a gateway may be running. Fails if auditing fails. */
export async function audited<T>(config: Config, change: Change, work: () => Promise<T>): Promise<T> {
  const { audit, stores } = config
  const redactor = redactorOf({ config, secrets: [] })
  await using log = await openAuditLog({
    folder: audit.path,
    sync: audit.sync,
    unrecordedReads: audit.unrecordedReads,
    // Only the gateway removes old records, because it knows which records were archived.
    retainMs: Number.MAX_SAFE_INTEGER,
    key: await keptAuditKey(stores.path),
    marks: marksFolder(stores.path, audit.path),
    describe: redactor.value,
    redactor: () => redactor.text,
    version,
    clock: systemClock,
    log: silentLog,
  })
  const action = { agent: '(none)', principal: `os:${osUser()}`, rule: 'command line', ...change }
  return await auditAction(log, action, work)
}
