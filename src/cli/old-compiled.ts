import { readdir, rm, stat } from 'node:fs/promises'
import { getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'

const monthMs = 30 * 86_400_000

/** Removes what other versions of Node have compiled of Toolway and nobody has added to for a month. */
export async function removeOldCompiled(present = getCompileCacheDir(), now = Date.now()): Promise<void> {
  if (present === undefined) return
  const folder = dirname(present)
  // NODE_COMPILE_CACHE leads elsewhere, to what is not only ours.
  if (basename(folder) !== 'compiled' || basename(dirname(folder)) !== 'toolway') return
  for (const name of await readdir(folder).catch(() => [])) {
    const other = join(folder, name)
    const facts = other === present ? undefined : await stat(other).catch(() => undefined)
    if (facts && now - facts.mtimeMs > monthMs) await rm(other, { recursive: true, force: true }).catch(() => {})
  }
}
