import { randomBytes } from 'node:crypto'
import { keptSecret } from './secret-file.ts'

/** What checkpoints of the audit log are signed with: whoever can read it can forge them. */
export const keptAuditKey = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'audit-key', make: () => randomBytes(32).toString('base64url') })
