import { constants, lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'
import type { Environment } from './interpolate.ts'

/**
 * Why a program must not be run for a secret: other users of this machine could change it, a folder on its path, or a
 * file among its arguments, such as the script of an interpreter. Undefined where nobody can.
 */
export async function changeableByOthers(
  words: readonly string[],
  folder: string,
  env: Environment,
): Promise<string | undefined> {
  // Other systems have no modes to go by.
  if (process.platform === 'win32') return undefined
  const [program = '', ...args] = words
  const found = program.includes('/') ? resolve(folder, program) : await searched(program, env)
  // What is not there cannot be started, and is told of as such.
  const files = [found, ...args.map((word) => resolve(folder, word))].filter((path) => path !== undefined)
  for (const path of files) {
    if (!isFile(path)) continue
    for (const place of new Set([path, realpathSync(path)])) {
      const fault = faultOnPath(place)
      if (fault !== undefined) return fault
    }
  }
  return undefined
}

async function searched(program: string, env: Environment): Promise<string | undefined> {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    const path = join(folder, program)
    const runnable = await access(path, constants.X_OK).then(
      () => isFile(path),
      () => false,
    )
    if (folder !== '' && runnable) return path
  }
  return undefined
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Looks at the file and at every folder above it: whoever can write in one of those can put another file there. */
function faultOnPath(file: string): string | undefined {
  let below: Stats | undefined
  for (let path = file; ; path = dirname(path)) {
    const found = lstatSync(path)
    // The mode of a link means nothing: where it leads is looked at as well.
    if (!found.isSymbolicLink()) {
      if (othersCanWrite(found) && !isProtected(found, below)) {
        const mode = (found.mode & 0o7777).toString(8)
        return `other users can change ${path} (mode ${mode}); chmod go-w it`
      }
    }
    below = found
    if (path === dirname(path)) return undefined
  }
}

const othersCanWrite = ({ mode, uid, gid }: Stats): boolean =>
  (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !isTrustedGroup(uid, gid))

/**
 * Members of root's group, and of macOS's administrators (who own Homebrew), can become root anyway. A group with the
 * number of the user is the user's own, where each user has such a group.
 */
const isTrustedGroup = (uid: number, gid: number): boolean =>
  gid === 0 || (process.platform === 'darwin' && gid === 80) || (gid === uid && uid === process.getuid?.())

/** In a folder with the sticky bit, such as /tmp, only its owner can replace a file. */
const isProtected = (folder: Stats, below: Stats | undefined): boolean =>
  below !== undefined && (folder.mode & 0o1000) !== 0 && (below.uid === 0 || below.uid === process.getuid?.())
