import { randomBytes } from 'node:crypto'
import { keptSecret } from './secret-file.ts'

/**
 * The token that clients must send. It is kept: an endpoint whose token changes with every start cannot be pasted
 * into an editor.
 */
export const keptToken = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'token', make: () => `tw_${randomBytes(24).toString('base64url')}` })
