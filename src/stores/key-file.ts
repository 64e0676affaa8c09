import { hash, randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { parseJson } from '../json/parse-json.ts'
import { lockFile, makeFolder, writeAtomic } from '../lib/files.ts'

const storedKey = z.strictObject({
  id: z.string().min(1),
  hash: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  agents: z.array(z.string()),
  admin: z.boolean(),
  created: z.iso.datetime(),
  expires: z.iso.datetime().optional(),
  endpoints: z.array(z.string()).optional(),
})
const keyFileContent = z.strictObject({ version: z.literal(1), keys: z.array(storedKey) })
type KeyFileEntry = z.output<typeof storedKey>

export interface StoredKey extends KeyFileEntry {
  /** The secret before the last rotation, which stays valid for a time. */
  readonly previous?: { readonly hash: string; readonly until: string } | undefined
}

/** Thrown if the key file is untrusted or invalid; the message says what to do. */
export class KeyFileProblem extends Error {
  override readonly name = 'KeyFileProblem'
}

const maxKeyFileBytes = 4 * 1024 * 1024

export const keyFile = (folder: string): string => join(folder, 'keys.json')

/** A string that changes whenever the file, its owner or its mode changes; undefined if there is no file. */
export function keyFileMark(folder: string): string | undefined {
  const found = lstatSync(keyFile(folder), { bigint: true, throwIfNoEntry: false })
  return found && [found.ino, found.size, found.mtimeNs, found.ctimeNs, found.mode].join(' ')
}

/** Reads the key file. Throws a KeyFileProblem if the file is damaged, or if others could have written it. */
export function readKeyFile(folder: string): readonly StoredKey[] {
  const path = keyFile(folder)
  const text = checkedText(path)
  if (text === undefined) return []
  const parsed = keyFileContent.safeParse(parseJson(text))
  if (!parsed.success) {
    const where = parsed.error.issues[0]?.path.join('.')
    throw new KeyFileProblem(
      `${path} is damaged${where ? ` (${where})` : ''}; restore it, or remove it and create new keys`,
    )
  }
  const { keys } = parsed.data
  if (new Set(keys.map(({ id }) => id)).size === keys.length) return withPrevious(keys)
  throw new KeyFileProblem(`${path} has two keys with the same name; remove one of them`)
}

/** The id of the entry with a key's previous secret. Names of keys cannot contain a space. */
const previousId = (id: string): string => `${id}${previousMark}`
const previousMark = ' previous'

/**
 * A previous secret is an entry of its own, so that 0.1.0, which refuses unknown members, can read the file and accepts
 * that secret too. It belongs to the key that was created with it; without that key, it was revoked.
 */
function withPrevious(entries: readonly KeyFileEntry[]): StoredKey[] {
  const previous = new Map(entries.map((entry) => [entry.id, entry]))
  return entries
    .filter(({ id }) => !id.endsWith(previousMark))
    .map((key) => {
      const old = previous.get(previousId(key.id))
      if (old?.expires === undefined || old.created !== key.created) return key
      return { ...key, previous: { hash: old.hash, until: old.expires } }
    })
}

function keyFileEntries({ previous, ...key }: StoredKey): KeyFileEntry[] {
  if (!previous) return [key]
  return [key, { ...key, id: previousId(key.id), hash: previous.hash, expires: previous.until }]
}

function checkedText(path: string): string | undefined {
  let descriptor: number
  try {
    // Do not follow a link, which could lead to any file, and do not block on a pipe.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new KeyFileProblem(
      `${path} cannot be opened (${code}); it must be a regular file owned by the user that runs Toolway`,
    )
  }
  try {
    const found = fstatSync(descriptor)
    if (!found.isFile()) throw new KeyFileProblem(`${path} is not a regular file; move or remove it`)
    if (process.platform !== 'win32' && (found.mode & 0o077) !== 0) {
      const mode = (found.mode & 0o777).toString(8)
      throw new KeyFileProblem(`${path} is accessible to others (mode ${mode}): check its keys, then run chmod 600`)
    }
    if (found.size > maxKeyFileBytes) throw new KeyFileProblem(`${path} is larger than 4 MiB; restore it from a backup`)
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

type KeyChange = (keys: readonly StoredKey[]) => readonly StoredKey[]

/**
 * Changes the key file while holding a lock. Readers see either the old or the new file, even after a power cut. Throws
 * a KeyFileProblem if the file cannot be read or written.
 */
export const changeKeyFile = (folder: string, change: KeyChange): Promise<void> =>
  replaceKeys(folder, change).catch((error: NodeJS.ErrnoException) => {
    if (error.syscall === undefined) throw error
    const advice = ['ENOSPC', 'EDQUOT'].includes(error.code ?? '')
      ? 'the disk is full: free some space, or set stores.path to another folder'
      : 'make its folder writable to the user that runs Toolway'
    throw new KeyFileProblem(`${keyFile(folder)} cannot be written (${error.code}); ${advice}`)
  })

async function replaceKeys(folder: string, change: KeyChange): Promise<void> {
  makeFolder(folder)
  const path = keyFile(folder)
  await using _lock = await lockFile(`${path}.lock`)
  const keys = change(readKeyFile(folder)).flatMap(keyFileEntries)
  await writeAtomic(path, `${JSON.stringify({ version: 1, keys }, undefined, 2)}\n`)
}

/** Valid key names. They appear in the key, the audit log and command lines, so few characters are allowed. */
export const keyName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/**
 * Creates an API key and the hash to store. Plain SHA-256 is enough: slow hashes protect guessable passwords, and 32
 * random bytes cannot be guessed. The key contains its name, so that it is clear which key to revoke after a leak.
 */
export function newApiKey(id: string): { readonly key: string; readonly hash: string } {
  const key = `twk_${id}_${randomBytes(32).toString('base64url')}`
  return { key, hash: `sha256:${hash('sha256', key, 'hex')}` }
}
