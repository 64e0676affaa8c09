import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '../runtime/package-paths.ts'

/** Makes a gateway that listens on this port that of the folder, whose configuration keeps its state in `./state`. */
export async function announcedIn({ cwd }: { readonly cwd: string }, port: number, more: object = {}): Promise<void> {
  await mkdir(join(cwd, 'state'), { recursive: true })
  const own = { origin: `http://127.0.0.1:${port}`, pid: process.pid, version, ...more }
  await writeFile(join(cwd, 'state', 'gateway.json'), JSON.stringify(own))
}

/** A temporary folder for a test, which is also its home. Disposing it removes it with its content. */
export async function folder(files: Readonly<Record<string, string | object>> = {}) {
  const made = await mkdtempDisposable(join(tmpdir(), 'toolway-cli-'))
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(made.path, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  const env = { HOME: made.path, PATH: process.env.PATH }
  return { cwd: made.path, env, [Symbol.asyncDispose]: () => made[Symbol.asyncDispose]() }
}
