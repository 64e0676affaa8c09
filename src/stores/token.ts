import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * The token that clients must send, made on the first start and kept for the next ones:
 * an endpoint whose token changes with every start cannot be pasted into an editor.
 */
export async function keptToken(folder: string): Promise<string> {
  const file = join(folder, 'token')
  return (await readToken(file)) ?? (await makeToken(folder, file))
}

async function readToken(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  const token = text.trim()
  if (token.length < 16) throw new Error(`${file} does not hold a token; remove it and start again to get a new one`)
  return token
}

/** Written aside and linked into place, so that of two starts at once both end up with the same whole token. */
async function makeToken(folder: string, file: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const draft = join(folder, `token.${randomBytes(6).toString('hex')}`)
  await writeFile(draft, `tw_${randomBytes(24).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  try {
    await link(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await unlink(draft)
  }
  return (await readToken(file)) as string
}
