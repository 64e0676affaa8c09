import { rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../tests/fixtures/folders.ts'

/** Empty folders outside of the repository, all gone at the end, however it comes about. */
export interface Folders extends AsyncDisposable {
  make(name: string): Promise<string>
}

export async function openFolders(): Promise<Folders> {
  const root = await temporaryFolder()
  const remove = () => rmSync(root.path, { recursive: true, force: true })
  process.on('exit', remove)
  let made = 0
  return {
    async make(name) {
      made += 1
      const path = join(root.path, `${made}-${name}`)
      await mkdir(path, { recursive: true })
      return path
    },
    async [Symbol.asyncDispose]() {
      await root[Symbol.asyncDispose]()
      process.off('exit', remove)
    },
  }
}
