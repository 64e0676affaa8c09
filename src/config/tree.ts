/** A configuration file, or an environment variable that is treated as one. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** Where a value was written. Translation and merging preserve it, so that errors point to the original text. */
export interface SourceLocation {
  readonly file: SourceFile
  readonly offset: number
  readonly key: string
}

export type Scalar = string | number | boolean | null
export type Path = readonly (string | number)[]

export interface LeafNode {
  readonly kind: 'leaf'
  readonly at: SourceLocation
  readonly value: Scalar
  /** The value as it is spelled in the file, so that 1.10 does not become 1.1 where text is expected. */
  readonly written: string
  /** Converts the value after interpolation, for dialects whose values differ from Toolway's. */
  readonly finish?: (text: string) => string
  /**
   * `filled`: variables were expanded. `left`: the value is unknown, because a variable is missing or invalid or a
   * command was not run.
   */
  readonly variables?: 'filled' | 'left'
}

export interface ListNode {
  readonly kind: 'list'
  readonly at: SourceLocation
  readonly items: readonly ConfigTree[]
}

export interface TreeMember {
  /** The location of the key, not of the value. */
  readonly at: SourceLocation
  readonly value: ConfigTree
}

export interface BranchNode {
  readonly kind: 'branch'
  readonly at: SourceLocation
  readonly members: ReadonlyMap<string, TreeMember>
}

/** A document whose nodes record their source locations. */
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

export const member = (value: ConfigTree, at: SourceLocation = value.at): TreeMember => ({ at, value })

/** Formats a path such as `mcpServers.files.args[0]`. Keys with special characters are quoted. */
export function keyPath(path: Path): string {
  let written = ''
  for (const part of path) {
    if (typeof part === 'number') written += `[${part}]`
    else if (/^[\w$@-]+$/.test(part)) written += written === '' ? part : `.${part}`
    else written += `[${JSON.stringify(part)}]`
  }
  return written
}

/** Whether a formatted path is `section` or inside it. */
export const isWithin = (key: string, section: string): boolean =>
  key === section || key.startsWith(`${section}.`) || key.startsWith(`${section}[`)

export function find(tree: ConfigTree | undefined, path: Path): ConfigTree | undefined {
  let current = tree
  for (const part of path) {
    if (current?.kind === 'branch') current = current.members.get(String(part))?.value
    else if (current?.kind === 'list' && typeof part === 'number') current = current.items[part]
    else return undefined
  }
  return current
}

export function scalarAt(tree: ConfigTree | undefined, path: Path): Scalar | undefined {
  const found = find(tree, path)
  return found?.kind === 'leaf' ? found.value : undefined
}

/** The location of the key at this path or, if it does not exist, of its nearest existing ancestor. */
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

export function mapLeaves(
  tree: ConfigTree,
  change: (leaf: LeafNode, path: Path) => ConfigTree,
  path: Path = [],
): ConfigTree {
  if (tree.kind === 'leaf') return change(tree, path)
  if (tree.kind === 'list') {
    return { ...tree, items: tree.items.map((item, index) => mapLeaves(item, change, [...path, index])) }
  }
  return mapMembers(tree, (value, key) => mapLeaves(value, change, [...path, key]))
}

export const mapMembers = (
  section: BranchNode,
  change: (value: ConfigTree, key: string, at: SourceLocation) => ConfigTree,
): BranchNode =>
  branch(
    section.at,
    [...section.members].map(([key, { at, value }]) => [key, { at, value: change(value, key, at) }] as const),
  )

/** Whether a path matches a pattern. `*` matches any single part. */
export function matchesPath(pattern: string, path: Path): boolean {
  const parts = pattern.split('.')
  return parts.length === path.length && parts.every((part, index) => part === '*' || part === String(path[index]))
}

/** Converts a tree to plain values. Null members are dropped, so that an empty section counts as absent. */
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

export const withMember = (section: BranchNode, key: string, value: TreeMember): BranchNode =>
  branch(section.at, [...section.members, [key, value]])

export function withoutMember(section: BranchNode, key: string): BranchNode {
  const members = new Map(section.members)
  members.delete(key)
  return branch(section.at, members)
}

/** Applies `change` to each server; `at` is the location of the server's name. */
export function mapServers(
  tree: BranchNode,
  change: (server: BranchNode, name: string, at: SourceLocation) => BranchNode,
): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.value.kind !== 'branch') return tree
  const changed = mapMembers(servers.value, (value, name, at) =>
    value.kind === 'branch' ? change(value, name, at) : value,
  )
  return withMember(tree, 'mcpServers', { at: servers.at, value: changed })
}

export function countServers(tree: BranchNode): number {
  const servers = tree.members.get('mcpServers')?.value
  return servers?.kind === 'branch' ? servers.members.size : 0
}
