import { hkdfSync, randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeNew } from '../lib/atomic-write.ts'

/** Reads a secret from a file that only its owner can read. The file is created on the first start. */
export async function keptSecret(folder: string, name: string, made = newSecret()): Promise<string> {
  const file = join(folder, name)
  const kept = await read(file)
  if (kept !== undefined) return kept
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // If two processes start at the same time, one creates the file and both read it.
  await writeNew(file, `${made}\n`)
  return (await read(file)) as string
}

const newSecret = (bytes = 32): string => randomBytes(bytes).toString('base64url')

async function read(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new Error(`${file} cannot be read (${error.code}); the user that runs Toolway must own it`)
  })
  if (text === undefined) return undefined
  const secret = text.trim()
  // Check the content: after a crash, the file may contain only zeros, which anyone could guess.
  if (/^[\x21-\x7e]{16,}$/.test(secret)) return secret
  throw new Error(`${file} does not contain a valid secret; remove it and restart Toolway to create a new one`)
}

/** The key that signs the audit log's checkpoints. Anyone who can read the key can forge checkpoints. */
export const keptAuditKey = (folder: string): Promise<string> => keptSecret(folder, 'audit-key')

/** Derives a secret for one purpose from a key. It reveals neither the key nor the secrets for other purposes. */
export const derivedSecret = (key: string, purpose: string): string =>
  Buffer.from(hkdfSync('sha256', key, '', `toolway ${purpose}`, 32)).toString('base64url')

/** The secret that seals the values that callers keep for Toolway. It is stored, so that they survive a restart. */
export const keptSealSecret = (folder: string): Promise<string> => keptSecret(folder, 'seal')

/** The access token. It is stored, because an editor's configuration needs a token that never changes. */
export const keptToken = (folder: string): Promise<string> => keptSecret(folder, 'token', `tw_${newSecret(24)}`)
