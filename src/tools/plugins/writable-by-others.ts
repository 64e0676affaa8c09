import { lstatSync, readlinkSync, type Stats } from 'node:fs'
import { dirname, isAbsolute, join, parse, sep } from 'node:path'

const maxLinks = 40
const sticky = 0o1000

/**
 * Checks whether users other than the current user and root could change the file, or any folder or symbolic link on
 * the way to it. Returns a message if they could. Throws if the path does not exist.
 */
export function writableByOthers(path: string): string | undefined {
  if (process.getuid === undefined) return undefined
  const { root } = parse(path)
  const rest = pathParts(path.slice(root.length))
  let at = root
  let links = 0
  /** Whether the current folder is sticky and writable by others: they can add files, but not change existing ones. */
  let shared = false
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === '..') {
      at = dirname(at)
      continue
    }
    const next = join(at, name)
    const facts = lstatSync(next)
    const problem = permissionProblem(next, facts)
    if (problem !== undefined) return problem
    if (shared && !facts.isDirectory()) return sharedFolderProblem(at)
    if (facts.isSymbolicLink()) {
      if (++links > maxLinks) return `${path} has a loop of symbolic links.`
      const target = readlinkSync(next)
      if (isAbsolute(target)) at = root
      rest.unshift(...pathParts(target))
      continue
    }
    shared = facts.isDirectory() && openToOthers(facts)
    at = next
  }
  return shared ? sharedFolderProblem(at) : undefined
}

/** A folder with the sticky bit, such as /tmp, is meant for all users, so its mode must stay. */
const sharedFolderProblem = (folder: string): string =>
  `Other users can write to the folder ${folder}; move the plugin to another folder.`

const pathParts = (path: string) => path.split(sep).filter((name) => name !== '' && name !== '.')

const openToOthers = ({ mode }: Stats) => (mode & 0o022) !== 0

function permissionProblem(path: string, facts: Stats): string | undefined {
  if (facts.uid !== 0 && facts.uid !== process.getuid?.()) {
    return `${path} belongs to another user, who could change it; keep plugins in a folder that you own.`
  }
  // Ignore the mode of links, which means nothing, and of sticky folders, where users cannot change others' files.
  const isShared = facts.isDirectory() && (facts.mode & sticky) !== 0
  if (facts.isSymbolicLink() || isShared || !openToOthers(facts)) return undefined
  return `Other users can write to ${path}; run "chmod go-w ${path}".`
}
