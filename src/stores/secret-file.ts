import { hkdfSync, randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { makeFolder, writeAtomic, writeNew } from '../lib/files.ts'

/** Reads a secret from a file that only its owner can read. The file is created on the first start. */
export async function keptSecret(folder: string, name: string, made = newSecret()): Promise<string> {
  const file = join(folder, name)
  const kept = await readSecret(file, made)
  if (kept !== undefined) return kept
  makeFolder(folder)
  // If two processes start at the same time, one creates the file and both read it.
  await writeNew(file, `${made}\n`)
  return (await readSecret(file, made)) as string
}

const tokenPrefix = 'tw_'

const newSecret = (bytes = 32): string => randomBytes(bytes).toString('base64url')

const readAdvice: Readonly<Record<string, string>> = {
  EACCES: 'the user that runs Toolway must own it',
  EPERM: 'the user that runs Toolway must own it',
  ENOTDIR: 'a part of this path is a file: check HOME, or set stores.path to a folder',
  EMFILE: 'too many files are open: raise the limit with ulimit -n',
}

async function readSecret(file: string, made = newSecret()): Promise<string | undefined> {
  const text = await readPrivate(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    if (error.code === undefined) throw error
    const message = `${file} cannot be read (${error.code}); ${readAdvice[error.code] ?? 'check stores.path'}`
    throw new Error(message, { cause: error })
  })
  if (text === undefined) return undefined
  const secret = text.trim()
  // Check the content: after a crash, the file may contain only zeros, which anyone could guess, or only the beginning
  // of the secret. Toolway writes a line break at the end. A token without its prefix was written by the user.
  const prefix = made.startsWith(tokenPrefix) ? tokenPrefix : ''
  const isCutOff = secret.startsWith(prefix) && secret.length < made.length && !text.endsWith('\n')
  if (/^[\x21-\x7e]{16,}$/.test(secret) && !isCutOff) return secret
  throw new Error(`${file} does not contain a valid secret; ${renewalAdvice(file)}`)
}

const losses: Readonly<Record<string, string>> = {
  'audit-key': '; `audit verify` then rejects the records so far',
  'vault-key': '; the OAuth grants and captured calls are then lost',
}

const renewalAdvice = (file: string): string =>
  `remove it and restart Toolway to create a new one${losses[basename(file)] ?? ''}`

async function readPrivate(file: string): Promise<string> {
  await using handle = await open(file)
  const text = await handle.readFile('utf8')
  const fault = exposureOf(await handle.stat())
  if (fault === undefined) return text
  throw new Error(`${file} ${fault}, so others may know the secret; ${renewalAdvice(file)}`)
}

/** Why others may know the secret. The group may have access: Kubernetes grants it to the group of a volume. */
function exposureOf({ uid, mode }: Stats): string | undefined {
  const user = process.geteuid?.()
  if (user === undefined) return undefined
  // Root may read the state of a service that runs as another user.
  if (user !== 0 && uid !== 0 && uid !== user) return 'belongs to another user'
  if ((mode & 0o007) === 0) return undefined
  return `is accessible to all users (mode ${(mode & 0o777).toString(8)}; to keep it, run chmod 600)`
}

/** The key that signs the audit log's checkpoints. Anyone who can read the key can forge checkpoints. */
export const keptAuditKey = (folder: string): Promise<string> => keptSecret(folder, 'audit-key')

/** Derives a secret for one purpose from a key. It reveals neither the key nor the secrets for other purposes. */
export const derivedSecret = (key: string, purpose: string): string =>
  Buffer.from(hkdfSync('sha256', key, '', `toolway ${purpose}`, 32)).toString('base64url')

/** This replica's own secret, and the one that replicas share in Redis, as last read, for a start while Redis is down. */
export function replicaSecret(folder: string) {
  const shared = join(folder, 'shared-seal')
  return {
    /** Seals the values that callers keep for Toolway. It is stored, so that they survive a restart. */
    own: () => keptSecret(folder, 'seal'),
    read: () => readSecret(shared),
    async write(secret: string): Promise<void> {
      if (secret !== (await readSecret(shared))) await writeAtomic(shared, `${secret}\n`)
    },
  }
}

export type ReplicaSecret = ReturnType<typeof replicaSecret>

/** The access token. It is stored, because an editor's configuration needs a token that never changes. */
export const keptToken = (folder: string): Promise<string> =>
  keptSecret(folder, 'token', `${tokenPrefix}${newSecret(24)}`)
