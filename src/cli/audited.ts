import { randomUUID } from 'node:crypto'
import { createRedactor } from '../audit/redact/redactor.ts'
import { secretsOf } from '../audit/redact/secrets.ts'
import { openAuditLog } from '../audit/write/audit-log.ts'
import { marksFolder } from '../audit/write/head.ts'
import type { Config } from '../config/schema.ts'
import { secretSettings } from '../config/schema-lookup.ts'
import { systemClock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import { osUser } from '../core/home.ts'
import { silentLog } from '../core/log.ts'
import { version } from '../runtime/package-paths.ts'
import { keptAuditKey } from '../stores/secret-file.ts'

/** What a command changes. */
interface Change {
  readonly operation: 'create_key' | 'revoke_key' | 'approve_pins'
  readonly arguments: Readonly<Record<string, unknown>>
}

/**
 * Changes something by command, and writes down who did it and how it went, in a lane of its own: a gateway may be
 * running. What cannot be recorded is not done.
 */
export async function audited<T>(config: Config, change: Change, work: () => Promise<T>): Promise<T> {
  const { audit, stores } = config
  const redactor = createRedactor({ secrets: secretsOf(secretSettings(config)), keys: audit.redact })
  await using log = await openAuditLog({
    folder: audit.path,
    sync: audit.sync,
    unrecordedReads: audit.unrecordedReads,
    // What is old is for the gateway to remove: it knows what was copied elsewhere.
    retainMs: Number.MAX_SAFE_INTEGER,
    key: await keptAuditKey(stores.path),
    marks: marksFolder(stores.path, audit.path),
    describe: redactor.value,
    redact: redactor.text,
    version,
    clock: systemClock,
    log: silentLog,
  })
  const subject = {
    call: randomUUID(),
    agent: '(none)',
    principal: `os:${osUser()}`,
    operation: change.operation,
    write: true,
  }
  const start = performance.now()
  const took = () => Math.round((performance.now() - start) * 100) / 100
  await log.begin({ ...subject, arguments: change.arguments })
  try {
    const result = await work()
    await log.end({ ...subject, decision: 'ALLOW', rule: 'command line', is_error: false, latency_ms: took() })
    return result
  } catch (thrown) {
    const reason = thrown instanceof ToolwayError ? thrown.code.toLowerCase() : 'failed'
    await log.end({ ...subject, decision: 'ERROR', reason, is_error: true, latency_ms: took() })
    throw thrown
  }
}
