import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'

const guest = fileURLToPath(new URL('guest', import.meta.url))

/** The child as it is published: one file that comes up in half the time, beside the two that are copied. */
export async function bundleChild(): Promise<{ readonly url: URL } & Disposable> {
  const folder = mkdtempSync(join(tmpdir(), 'toolway-guest-'))
  // Whoever the child runs as must be able to read it.
  chmodSync(folder, 0o755)
  const bundle = await rolldown({ input: { main: join(guest, 'main.ts') }, platform: 'node', external: [/^node:/] })
  await bundle.write({ dir: folder, format: 'esm', entryFileNames: '[name].js' })
  await bundle.close()
  for (const file of ['package.json', 'python.py']) cpSync(join(guest, file), join(folder, file))
  return {
    url: pathToFileURL(join(folder, 'main.js')),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}
