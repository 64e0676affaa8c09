/** A file, or a variable that takes its place, as it was read. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** Where something was written: errors point at it even after files were translated and merged. */
export interface SourceLocation {
  readonly file: SourceFile
  readonly offset: number
  /** The key path as the file spells it. */
  readonly key: string
}

export type Scalar = string | number | boolean | null
export type Path = readonly (string | number)[]

export interface LeafNode {
  readonly kind: 'leaf'
  readonly at: SourceLocation
  readonly value: Scalar
  /** As the file spells it, so that 1.10 stays 1.10 where text is wanted. */
  readonly written: string
  /** Applied after variables are filled in, where a dialect has to look at the whole value. */
  readonly finish?: (text: string) => string
  /** What became of its variables: filled in, or left alone because the section is disabled. */
  readonly variables?: 'filled' | 'left'
}

export interface ListNode {
  readonly kind: 'list'
  readonly at: SourceLocation
  readonly items: readonly ConfigTree[]
}

export interface TreeMember {
  /** Place of the key. */
  readonly at: SourceLocation
  readonly value: ConfigTree
}

export interface BranchNode {
  readonly kind: 'branch'
  readonly at: SourceLocation
  readonly members: ReadonlyMap<string, TreeMember>
}

/** A document in which every part knows where it was written. */
export type ConfigTree = BranchNode | ListNode | LeafNode

export const leaf = (at: SourceLocation, value: Scalar, written = String(value)): LeafNode => ({
  kind: 'leaf',
  at,
  value,
  written,
})

export const branch = (at: SourceLocation, members: Iterable<readonly [string, TreeMember]> = []): BranchNode => ({
  kind: 'branch',
  at,
  members: new Map(members),
})

export const list = (at: SourceLocation, items: readonly ConfigTree[]): ListNode => ({ kind: 'list', at, items })

/** A member whose key was written where its value was. */
export const member = (value: ConfigTree, at: SourceLocation = value.at): TreeMember => ({ at, value })

/** `mcpServers.files.args[0]`; keys that are no plain words are quoted. */
export function keyPath(path: Path): string {
  let written = ''
  for (const part of path) {
    if (typeof part === 'number') written += `[${part}]`
    else if (/^[\w$@-]+$/.test(part)) written += written === '' ? part : `.${part}`
    else written += `[${JSON.stringify(part)}]`
  }
  return written
}

/** The part at this path, if there is one. */
export function find(tree: ConfigTree | undefined, path: Path): ConfigTree | undefined {
  let current = tree
  for (const part of path) {
    if (current?.kind === 'branch') current = current.members.get(String(part))?.value
    else if (current?.kind === 'list' && typeof part === 'number') current = current.items[part]
    else return undefined
  }
  return current
}

/** Where the key at this path was written, or else the nearest thing around it. */
export function locationOf(tree: ConfigTree, path: Path): SourceLocation {
  let current: ConfigTree | undefined = tree
  let place = tree.at
  for (const part of path) {
    if (current?.kind === 'branch') {
      const found: TreeMember | undefined = current.members.get(String(part))
      if (!found) return place
      place = found.at
      current = found.value
    } else if (current?.kind === 'list' && typeof part === 'number') {
      current = current.items[part]
      if (!current) return place
      place = current.at
    } else return place
  }
  return place
}

/** The same tree with each leaf replaced; `path` is where the leaf stands now. */
export function mapLeaves(
  tree: ConfigTree,
  change: (leaf: LeafNode, path: Path) => ConfigTree,
  path: Path = [],
): ConfigTree {
  if (tree.kind === 'leaf') return change(tree, path)
  if (tree.kind === 'list') {
    return { ...tree, items: tree.items.map((item, index) => mapLeaves(item, change, [...path, index])) }
  }
  const members = [...tree.members].map(
    ([key, { at, value }]) => [key, { at, value: mapLeaves(value, change, [...path, key]) }] as const,
  )
  return branch(tree.at, members)
}

/** Whether `path` is the one that the pattern describes; `*` stands for any one part. */
export function matchesPath(pattern: string, path: Path): boolean {
  const parts = pattern.split('.')
  return parts.length === path.length && parts.every((part, index) => part === '*' || part === String(path[index]))
}

/** The plain value. A member without a value (null) is left out, so that an empty section is no section. */
export function toPlain(tree: ConfigTree, path: Path = []): unknown {
  if (tree.kind === 'leaf') return tree.value
  if (tree.kind === 'list') return tree.items.map((item, index) => toPlain(item, [...path, index]))
  const keepNull = path[0] === 'sinks' && path[2] === 'arguments'
  const value: Record<string, unknown> = {}
  for (const [key, { value: part }] of tree.members) {
    if (part.kind === 'leaf' && part.value === null && !keepNull) continue
    value[key] = toPlain(part, [...path, key])
  }
  return value
}

/** The same section with one more member, or another one in its place. */
export const withMember = (section: BranchNode, key: string, value: TreeMember): BranchNode =>
  branch(section.at, [...section.members, [key, value]])

/** The same document with each of its servers changed; `at` is where the server's name was written. */
export function mapServers(
  tree: BranchNode,
  change: (server: BranchNode, name: string, at: SourceLocation) => BranchNode,
): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.value.kind !== 'branch') return tree
  const changed = [...servers.value.members].map(([name, { at, value }]) => {
    return [name, { at, value: value.kind === 'branch' ? change(value, name, at) : value }] as const
  })
  return withMember(tree, 'mcpServers', { at: servers.at, value: branch(servers.value.at, changed) })
}

/** How many servers a document has. */
export function countServers(tree: BranchNode): number {
  const servers = tree.members.get('mcpServers')?.value
  return servers?.kind === 'branch' ? servers.members.size : 0
}
