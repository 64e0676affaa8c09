import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A short hash of files, of the installed packages and of the version of Node, by which a build can be found again. */
export function fingerprint(patterns: readonly string[]): string {
  const hash = createHash('sha256').update(process.version)
  for (const file of globSync(['package-lock.json', ...patterns], { cwd: root }).sort()) {
    if (!file.endsWith('.test.ts')) hash.update(`${file}\n`).update(readFileSync(join(root, file)))
  }
  return hash.digest('hex').slice(0, 16)
}
