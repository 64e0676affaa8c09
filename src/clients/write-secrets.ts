import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { SecretFile } from './keepers.ts'

/** Writes each secret into its file, which nobody but its owner can read; a file that is there is never touched. */
export async function writeSecrets(files: readonly SecretFile[]): Promise<void> {
  for (const { path, secret } of files) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  }
}
