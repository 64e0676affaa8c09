import { dirname, isAbsolute, resolve } from 'node:path'
import { type BranchNode, type LeafNode, mapLeaves, matchesPath } from './tree.ts'

/** Keys that hold files and folders. Arguments of a program are its own affair and stay as they are. */
const pathKeys = [
  'mcpServers.*.cwd',
  'mcpServers.*.guards.*.roots.*',
  'audit.path',
  'stores.path',
  'sinks.*.path',
  'native.plugins.*',
  'sandbox.allowPaths.*',
  'models.*.path',
]

/** Makes paths absolute, each against the folder of the file that it was written in. */
export function absolutePaths(tree: BranchNode, home: string): BranchNode {
  return mapLeaves(tree, (part, path) =>
    typeof part.value === 'string' && part.value !== '' && pathKeys.some((pattern) => matchesPath(pattern, path))
      ? { ...part, value: absolute(part, part.value, home) }
      : part,
  ) as BranchNode
}

function absolute({ at, variables }: LeafNode, path: string, home: string): string {
  if (variables === 'left') return path
  return inHome(path, home) ?? resolve(dirname(at.file.path), path)
}

/** What `~/…` stands for; nothing where a path does not begin like that. */
export const inHome = (path: string, home: string): string | undefined =>
  path === '~' || path.startsWith('~/') ? resolve(home, `.${path.slice(1)}`) : undefined

/** Whether a path, as it is written, depends on the file it stands in; what a variable begins is not known. */
export const isRelative = (path: string): boolean =>
  path !== '' && !isAbsolute(path) && !/^~(\/|$)|^\$\{|^[A-Za-z]:[\\/]/.test(path)
