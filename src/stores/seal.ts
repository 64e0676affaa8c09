import { randomBytes } from 'node:crypto'
import { keptSecret } from './secret-file.ts'

/** The secret that what callers hold is sealed with: kept, so that it stays good when Toolway starts again. */
export const keptSealSecret = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'seal', make: () => randomBytes(32).toString('base64url') })
