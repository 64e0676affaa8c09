import { statfs } from 'node:fs/promises'
import type { Config } from '../../config/schema.ts'
import { sizeText } from '../size.ts'
import { type Check, ok, problem, warning } from './finding.ts'
import { nearest } from './store-folders.ts'
import { quoted } from './words.ts'

/** What the audit log keeps for the ends of calls that are under way when the disk is full. */
const reserveBytes = 256 * 1024
/** So much that the reserve can be had, and something be written before it is needed. */
const leastBytes = 4 * reserveBytes
/** A few files of the log. */
const enoughBytes = 256 * 1024 * 1024

/** Whether there is room for the audit log: without it, writes are refused. */
export const storeSpaceCheck = ({ audit }: Config, measure = freeBytes): Check => ({
  name: 'stores.space',
  async run() {
    const { path } = await nearest(audit.path)
    const { bytes, noFiles } = await measure(path)
    const look = `df -h ${quoted(path)}   # make room there, or set audit.path and stores.path`
    if (noFiles) return problem('the file system of the audit log can hold no more files', `df -i ${quoted(path)}`)
    const free = `${sizeText(bytes)} free where the audit log is written`
    if (bytes < leastBytes) return problem(`${free}: too little for its reserve, so writes are refused`, look)
    return bytes < enoughBytes ? warning(free, look) : ok(free)
  },
})

async function freeBytes(path: string): Promise<{ readonly bytes: number; readonly noFiles: boolean }> {
  const { bavail, bsize, files, ffree } = await statfs(path)
  // Some file systems count no files at all.
  return { bytes: bavail * bsize, noFiles: files > 0 && ffree === 0 }
}
