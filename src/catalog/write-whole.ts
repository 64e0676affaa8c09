import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Complete on disk under another name first, so that a crash leaves the old file or the new one. */
export async function writeWhole(folder: string, name: string, text: string): Promise<void> {
  const temporary = join(folder, `.${name}.${randomUUID()}.tmp`)
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, join(folder, name))
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
}
