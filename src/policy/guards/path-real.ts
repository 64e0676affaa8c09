import { lstat, realpath } from 'node:fs/promises'
import { join, parse, sep } from 'node:path'

/** Why a path cannot be told to be harmless, to go on from "The argument … ". */
export class Untraceable extends Error {}

/**
 * Where an absolute path really leads: symbolic links resolved as far as it exists, the rest as it is written. The
 * answer has the case that the disk has, so that it can be compared as it is on every platform.
 */
export async function realPath(path: string): Promise<string> {
  return (await resolved(path)) ?? (await resolvedInPart(path))
}

/** Something to be written does not exist yet: the existing folder nearest to it decides. */
async function resolvedInPart(path: string): Promise<string> {
  const { root, dir, base } = parse(path)
  // Most often it is a new file in a folder that exists.
  const folder = await resolved(dir)
  if (folder !== undefined) return await unlessLink(join(folder, base))
  const names = path.slice(root.length).split(sep)
  let real = (await resolved(root)) ?? root
  // From the top downwards, because it ends at the first folder that is missing, however long the path is.
  for (const [index, name] of names.entries()) {
    const next = await resolved(join(real, name))
    if (next === undefined) return join(await unlessLink(join(real, name)), ...names.slice(index + 1))
    real = next
  }
  return real
}

/** A link that leads nowhere is no missing file: whoever writes to it makes one where it points. */
async function unlessLink(missing: string): Promise<string> {
  const found = await unlessMissing(lstat(missing))
  if (found === undefined) return missing
  throw new Untraceable('is a symbolic link to something that does not exist')
}

const resolved = (path: string): Promise<string | undefined> => unlessMissing(realpath(path))

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'ELOOP') throw new Untraceable('leads through symbolic links that never end')
    if (code === 'ENAMETOOLONG') throw new Untraceable('has a name that is too long')
    throw new Untraceable('could not be checked, because the gateway may not look there')
  }
}

/** Whether `path` is the folder or lies in it, name by name: `/data-old` is not in `/data`. Both must be real paths. */
export function inside(folder: string, path: string): boolean {
  const outer = parts(folder)
  const inner = parts(path)
  return outer.length <= inner.length && outer.every((name, index) => name === inner[index])
}

const parts = (path: string) => path.split(sep).filter((name) => name !== '')
