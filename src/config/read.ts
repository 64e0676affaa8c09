import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { type ConfigProblem, fileProblem } from './problems.ts'
import type { SourceFile } from './tree.ts'

/** Far above any real configuration: whatever is larger was named by mistake. */
const maxBytes = 8 * 1024 * 1024

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this file cannot be read: permission denied',
  EPERM: 'this file cannot be read: permission denied',
  EISDIR: 'this is a folder; name the file inside it',
  ENOTDIR: 'there is no such file',
  ELOOP: 'this symbolic link leads back to itself',
}

/** Reads a configuration file as text, or says why that is impossible. */
export async function readSource(path: string): Promise<SourceFile | ConfigProblem> {
  try {
    const facts = await stat(path)
    if (facts.isDirectory()) return fileProblem(path, reasons.EISDIR as string)
    if (facts.size > maxBytes) return tooLarge(path)
    // A device has no size and may never end.
    const bytes = await buffer(createReadStream(path, { end: maxBytes }))
    return bytes.length > maxBytes ? tooLarge(path) : decode(path, bytes)
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? ''
    return fileProblem(path, reasons[code] ?? `this file cannot be read: ${code}`)
  }
}

const tooLarge = (path: string) => fileProblem(path, `this file is larger than ${maxBytes / 1024 ** 2} MiB`)

function decode(path: string, bytes: Buffer): SourceFile | ConfigProblem {
  try {
    // A byte order mark is tolerated: the decoder drops it.
    return { path, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return fileProblem(path, 'this file is not UTF-8 text; save it as UTF-8')
  }
}
