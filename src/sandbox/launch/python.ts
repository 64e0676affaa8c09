import { execFile } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Runtime } from '../runtime.ts'
import { type BwrapOptions, launchInBwrap } from './bwrap.ts'
import { findProgram } from './options.ts'

const run = promisify(execFile)

/** What the interpreter itself takes, libraries and the stacks of a few threads included. */
const interpreterBytes = 160 * 1024 * 1024

/** The interpreter proper and its library, which a name in the PATH may only lead to (pyenv, links). */
interface Interpreter {
  readonly executable: string
  readonly library: string
}

const question = `import json, os, sys, sysconfig
print(json.dumps([os.path.realpath(sys.executable), sysconfig.get_path('stdlib')]))`

/** The interpreters of this machine, in the order of preference. */
export async function findInterpreters(): Promise<readonly Interpreter[]> {
  const names = [...new Set([findProgram('python3'), '/usr/bin/python3'].flatMap((path) => path ?? []))]
  const answers = names.map(async (name) => {
    try {
      const { stdout } = await run(name, ['-I', '-S', '-c', question], { timeout: 10_000 })
      const [executable, library] = JSON.parse(stdout) as [string, string]
      return [{ executable, library }]
    } catch {
      return []
    }
  })
  return (await Promise.all(answers)).flat()
}

/** Python behind `bwrap`, where the interpreter and its library are all there is; anywhere else it would be free. */
export function pythonInBwrap(options: BwrapOptions, { executable, library }: Interpreter): Promise<Runtime> {
  const script = '/toolway/python.py'
  return launchInBwrap(options, {
    command: [executable, '-I', '-S', '-B', '-X', 'utf8', script],
    programs: [executable, ...globSync(join(library, 'lib-dynload', '*.so'))],
    mounts: [
      { from: executable, to: executable },
      { from: library, to: library },
      { from: fileURLToPath(new URL('python.py', options.child)), to: script },
      ...options.folders.map((folder) => ({ from: folder, to: folder, optional: true })),
    ],
    // In some installations what else was installed lies within the library.
    hidden: [join(library, 'site-packages')].filter(existsSync),
    limits: { addresses: interpreterBytes + options.memory },
  })
}
