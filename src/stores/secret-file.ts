import { hkdfSync, randomBytes } from 'node:crypto'
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface SecretFile {
  readonly folder: string
  readonly name: string
  make(): string
}

/** A secret that is created on the first start and kept, readable only by its owner. */
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
  // After a crash of the machine, the file may contain zeros, which anybody could guess.
  if (/^[\x21-\x7e]{16,}$/.test(secret)) return secret
  throw new Error(`${file} does not hold a secret; remove it and start again to get a new one`)
}

/** Written to a temporary file and linked, so that two concurrent starts end up with the same complete secret. */
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

/** Signs the checkpoints of the audit log: anyone who can read it can forge them. */
export const keptAuditKey = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'audit-key', make: () => randomBytes(32).toString('base64url') })

/** Derives a secret for one purpose; it reveals neither the key nor the other secrets. */
export const derivedSecret = (key: string, purpose: string): string =>
  Buffer.from(hkdfSync('sha256', key, '', `toolway ${purpose}`, 32)).toString('base64url')

/** Seals what callers hold; kept, so that it stays valid after a restart. */
export const keptSealSecret = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'seal', make: () => randomBytes(32).toString('base64url') })

/** Kept, because a token that changes on every start cannot be put into an editor's configuration. */
export const keptToken = (folder: string): Promise<string> =>
  keptSecret({ folder, name: 'token', make: () => `tw_${randomBytes(24).toString('base64url')}` })
