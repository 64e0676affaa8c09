import { readFileSync } from 'node:fs'
import type { Log } from '../../core/log.ts'
import { type Files, writeWhole } from './files.ts'
import { type Verifier, verifiersOf } from './keys.ts'
import { publicKeyFile } from './layout.ts'

/** Puts the public key beside the log, so that others can check signatures without the secret. */
export function publishKey(folder: string, key: Verifier, files: Files, log: Log): void {
  files.mkdirSync(folder)
  const path = publicKeyFile(folder)
  const known = verifiersOf(text(path))
  if (known.some(({ id }) => id === key.id)) return
  if (known.length > 0) {
    log.warn({ file: path }, 'the secret of the audit log has been replaced; older records keep their old signatures')
  }
  const fd = files.openSync(path, 'a', 0o644)
  try {
    writeWhole(files, fd, Buffer.from(key.pem))
  } finally {
    files.closeSync(fd)
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
