import { withMember } from '../map-servers.ts'
import { type Branch, type List, leaf, member, type Place, type Tree } from '../tree.ts'
import { shape } from './shape.ts'

/** Arguments that hold a path wherever they occur. */
const always = ['path', 'paths[]', 'file_path', 'directory', 'dir', 'folder']
/** Arguments that hold a path with servers that are given folders to work in. */
const withFolders = ['file', 'source', 'destination']

/**
 * A server whose path-like arguments are checked, unless its entry has guards of its own. They may lie in `roots`, else in
 * the folders among the server's own arguments; where neither is known, anywhere, but absolute and without traversal.
 */
export function withPathGuard(server: Branch, roots: List | undefined): Branch {
  if (server.members.has('guards')) return server
  const folders = roots?.items ?? foldersIn(server.members.get('args')?.value)
  const known = folders.length > 0
  const texts = (items: readonly string[]): List =>
    listOf(
      server.at,
      items.map((item) => leaf(server.at, item)),
    )
  const guard = shape(server.at, {
    kind: leaf(server.at, 'path'),
    arguments: texts(known ? [...always, ...withFolders] : always),
    roots: known ? listOf(server.at, folders) : texts(['/']),
  })
  return withMember(server, 'guards', member(listOf(server.at, [guard])))
}

/** Absolute or explicitly relative arguments; a name with an extension is a program, not a folder. */
function foldersIn(args: Tree | undefined): readonly Tree[] {
  if (args?.kind !== 'list') return []
  return args.items.filter(
    (item) =>
      item.kind === 'leaf' &&
      typeof item.value === 'string' &&
      /^(?:\/|~\/|\.{1,2}(?:\/|$))/.test(item.value) &&
      !/\.[A-Za-z]\w*$/.test(item.value),
  )
}

const listOf = (at: Place, items: readonly Tree[]): List => ({ kind: 'list', at, items })
