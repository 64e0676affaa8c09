import { dirname, isAbsolute, resolve } from 'node:path'
import { type BranchNode, type LeafNode, mapLeaves, matchesPath } from './tree.ts'

/** Keys whose values are paths. Paths in a program's arguments are not resolved. */
const pathKeys = [
  'mcpServers.*.cwd',
  'mcpServers.*.guards.*.roots.*',
  'audit.path',
  'stores.path',
  'sinks.*.path',
  'native.plugins.*',
  'skills.folders.*',
  'sandbox.allowPaths.*',
  'models.*.path',
]

/** Resolves each path relative to the folder of the configuration file that contains the path. */
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

/** Expands `~` and `~/…`; undefined for other paths. */
export const inHome = (path: string, home: string): string | undefined =>
  path === '~' || path.startsWith('~/') ? resolve(home, `.${path.slice(1)}`) : undefined

/** Whether a path is relative to its configuration file's folder; false for a path that starts with a variable. */
export const isRelative = (path: string): boolean =>
  path !== '' && !isAbsolute(path) && !/^~(\/|$)|^\$\{|^[A-Za-z]:[\\/]/.test(path)
