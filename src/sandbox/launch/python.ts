import { execFile } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { jsonValue } from '../../json/parse-json.ts'
import { findProgram } from '../../process/programs.ts'
import type { Runtime } from '../runtime.ts'
import { type BwrapOptions, launchInBwrap } from './bwrap.ts'

const runInterpreter = promisify(execFile)

/** Memory for the interpreter itself, including libraries and a few thread stacks. */
const interpreterBytes = 160 * 1024 * 1024

/** The real interpreter and its library; the name in PATH may be a link or a pyenv shim. */
interface Interpreter {
  readonly executable: string
  readonly library: string
}

const interpreterQuestion = `import json, os, sys, sysconfig
print(json.dumps([os.path.realpath(sys.executable), sysconfig.get_path('stdlib')]))`

/** The interpreters on this machine, preferred first. */
export async function findInterpreters(): Promise<readonly Interpreter[]> {
  const names = [...new Set([findProgram('python3'), '/usr/bin/python3'].flatMap((path) => path ?? []))]
  const answers = names.map(async (name) => {
    try {
      const { stdout } = await runInterpreter(name, ['-I', '-S', '-c', interpreterQuestion], { timeout: 10_000 })
      const [executable, library] = jsonValue(stdout) as [string, string]
      return [{ executable, library }]
    } catch {
      return []
    }
  })
  return (await Promise.all(answers)).flat()
}

/** Python in `bwrap`, with only the interpreter and its library visible. No other tier can isolate Python. */
export function pythonInBwrap(options: BwrapOptions, { executable, library }: Interpreter): Promise<Runtime> {
  const script = '/toolway/python.py'
  const bare = ['-I', '-S']
  return launchInBwrap(options, {
    command: [executable, ...bare, '-B', '-X', 'utf8', script],
    executable,
    modules: { files: globSync(join(library, 'lib-dynload', '*.so')), idle: [...bare, '-c', ''] },
    mounts: [
      { from: executable, to: executable },
      { from: library, to: library },
      { from: fileURLToPath(new URL('python.py', options.child)), to: script },
      ...options.folders.map((folder) => ({ from: folder, to: folder, optional: true })),
    ],
    // Hide site-packages, which some installations keep inside the library.
    hidden: [join(library, 'site-packages')].filter(existsSync),
    limits: { addresses: interpreterBytes + options.memory },
  })
}
