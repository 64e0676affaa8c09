import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAuditLog } from '../../src/audit/write/audit-log.ts'
import { nodeFileSystem } from '../../src/audit/write/segment-file.ts'
import type { Audit } from '../../src/core/audit.ts'
import { silentLog } from '../../src/core/log.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'

/** An audit log on a disk that takes nothing. */
export const auditOnFullDisk = (): Promise<Audit> =>
  openAuditLog({
    folder: join(tmpdir(), 'toolway-error-pages'),
    sync: 'writes',
    unrecordedReads: 'allow',
    retainMs: 86_400_000,
    key: 'of no consequence',
    describe: () => undefined,
    clock: createManualClock(),
    log: silentLog,
    files: { ...nodeFileSystem, mkdirSync: full, openSync: full },
  })

const full = (): never => {
  throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
}
