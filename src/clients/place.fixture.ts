import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A temporary folder with these files, removed after the test. */
export async function place(files: Readonly<Record<string, string | Buffer>> = {}) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'toolway-clients-')))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
  return { folder, at: (...parts: string[]) => join(folder, ...parts) }
}
