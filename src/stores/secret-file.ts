import { hkdfSync, randomBytes } from 'node:crypto'
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface SecretFile {
  readonly folder: string
  readonly name: string
  make(): string
}

/** A secret that is made on the first start and kept for the next ones, readable by its owner alone. */
export async function keptSecret({ folder, name, make }: SecretFile): Promise<string> {
  const file = join(folder, name)
  return (await read(file)) ?? (await create(folder, file, make()))
}

async function read(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new Error(`${file} cannot be read (${error.code}); make it a file of the user that runs Toolway`)
  })
  if (text === undefined) return undefined
  const secret = text.trim()
  // Zeros are what a crash of the machine leaves, and what anybody could guess.
  if (/^[\x21-\x7e]{16,}$/.test(secret)) return secret
  throw new Error(`${file} does not hold a secret; remove it and start again to get a new one`)
}

/** Written aside and linked into place, so that of two starts at once both end up with the same whole secret. */
async function create(folder: string, file: string, secret: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  try {
    await link(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await unlink(draft)
  }
  return (await read(file)) as string
}

/** What checkpoints of the audit log are signed with: whoever can read it can forge them. */
export const keptAuditKey = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'audit-key', make: () => randomBytes(32).toString('base64url') })

/** A secret for one purpose, made of a key that serves several: who learns one of them learns nothing of the others. */
export const derivedSecret = (key: string, purpose: string): string =>
  Buffer.from(hkdfSync('sha256', key, '', `toolway ${purpose}`, 32)).toString('base64url')

/** The secret that what callers hold is sealed with: kept, so that it stays good when Toolway starts again. */
export const keptSealSecret = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'seal', make: () => randomBytes(32).toString('base64url') })

/**
 * The token that clients must send. It is kept: an endpoint whose token changes with every start cannot be pasted
 * into an editor.
 */
export const keptToken = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'token', make: () => `tw_${randomBytes(24).toString('base64url')}` })
