import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Runtime } from '../runtime.ts'
import { bwrapCommand, type Sight, sightOf } from './bwrap.ts'
import { librariesOf } from './libraries.ts'
import { limited } from './limited.ts'
import { findProgram, type Place } from './place.ts'
import { processChild } from './process-child.ts'
import { seccompFilter } from './seccomp.ts'

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
export async function interpreters(): Promise<readonly Interpreter[]> {
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
export async function wrappedPython(
  place: Place & { readonly bwrap: string; readonly user?: number },
  { executable, library }: Interpreter,
): Promise<Runtime> {
  const { bwrap, user, memory, child, folders, limit } = place
  const extensions = globSync(join(library, 'lib-dynload', '*.so'))
  const sights: Sight[] = [
    ...(await librariesOf([executable, ...extensions])).map(sightOf),
    { from: '/etc/ld.so.cache', to: '/etc/ld.so.cache', optional: true },
    { from: executable, to: executable },
    { from: library, to: library },
    { from: fileURLToPath(new URL('python.py', child)), to: '/toolway/python.py' },
    ...folders.map((folder) => ({ from: folder, to: folder, optional: true })),
  ]
  const filter = seccompFilter()
  const command = bwrapCommand({
    bwrap,
    sights,
    filtered: filter !== undefined,
    command: [executable, '-I', '-S', '-B', '-X', 'utf8', '/toolway/python.py'],
  })
  const words = limited(command, { addresses: interpreterBytes + memory })
  return {
    tier: 'bwrap',
    start: () =>
      processChild({
        command: words,
        wrapped: true,
        limit,
        ...(filter && { filter }),
        ...(user !== undefined && { user }),
      }),
  }
}
