import { randomBytes } from 'node:crypto'
import { createSeal, type Seal } from '../core/seal.ts'
import { keptSecret } from './secret-file.ts'

/** A seal whose key is kept, so that what callers hold stays good when Toolway starts again. */
export const keptSeal = async (folder: string): Promise<Seal> =>
  createSeal(await keptSecret({ folder, name: 'seal', make: () => randomBytes(32).toString('base64url') }))
