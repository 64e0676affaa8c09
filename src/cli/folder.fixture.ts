import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A temporary folder for a test, which is also its home. Disposing it removes it with its content. */
export async function folder(files: Readonly<Record<string, string | object>> = {}) {
  const made = await mkdtempDisposable(join(tmpdir(), 'toolway-cli-'))
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(made.path, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  const env = { HOME: made.path, PATH: process.env.PATH }
  return { cwd: made.path, env, [Symbol.asyncDispose]: () => made[Symbol.asyncDispose]() }
}
