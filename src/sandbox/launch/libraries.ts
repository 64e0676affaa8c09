import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The shared libraries that programs are loaded with, by the paths where their loader looks. */
export async function librariesOf(files: readonly string[]): Promise<readonly string[]> {
  // One that is linked statically has none, and `ldd` calls that a failure.
  const { stdout } = await run('ldd', files, { maxBuffer: 4 * 1024 * 1024 }).catch((error: { stdout?: string }) => ({
    stdout: error.stdout ?? '',
  }))
  const found = stdout.matchAll(/^\s+(?:\S+ => )?(\/\S+) \(0x/gm)
  return [...new Set([...found].map(([, path = '']) => path))]
}
