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

interface LocatedNode {
  readonly at: SourceLocation
  /** The location of the key, for a member of a section. If it is missing, errors point to the value. */
  readonly keyAt?: SourceLocation
}

export interface LeafNode extends LocatedNode {
  readonly kind: 'leaf'
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

export interface ListNode extends LocatedNode {
  readonly kind: 'list'
  readonly items: readonly ConfigTree[]
}

export interface BranchNode extends LocatedNode {
  readonly kind: 'branch'
  readonly members: ReadonlyMap<string, ConfigTree>
}

/** A document whose nodes record their source locations. */
export type ConfigTree = BranchNode | ListNode | LeafNode

export const leaf = (at: SourceLocation, value: Scalar, written = String(value)): LeafNode => ({
  kind: 'leaf',
  at,
  value,
  written,
})

export const branch = (at: SourceLocation, members: Iterable<readonly [string, ConfigTree]> = []): BranchNode => ({
  kind: 'branch',
  at,
  members: new Map(members),
})

export const list = (at: SourceLocation, items: readonly ConfigTree[]): ListNode => ({ kind: 'list', at, items })

export const leafList = (at: SourceLocation, values: readonly Scalar[]): ListNode =>
  list(
    at,
    values.map((value) => leaf(at, value)),
  )

/** Where errors about a node point to: its key, if it has one. */
export const keyLocation = ({ at, keyAt = at }: ConfigTree): SourceLocation => keyAt

/** The same node as the member of a section whose key is written there. */
export const withKeyAt = <Node extends ConfigTree>(node: Node, keyAt: SourceLocation): Node => ({ ...node, keyAt })

export const leafText = (node: ConfigTree | undefined): string | undefined =>
  node?.kind === 'leaf' && typeof node.value === 'string' ? node.value : undefined

/** The items of a list; none for anything else. */
export const itemsIn = (node: ConfigTree | undefined): readonly ConfigTree[] =>
  node?.kind === 'list' ? node.items : []

/** The members of a section; none for anything else. */
export const membersIn = (node: ConfigTree | undefined): ReadonlyMap<string, ConfigTree> =>
  node?.kind === 'branch' ? node.members : new Map()

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
    if (current?.kind === 'branch') current = current.members.get(String(part))
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
  let place = tree.at
  for (const index of path.keys()) {
    const found = find(tree, path.slice(0, index + 1))
    if (!found) return place
    place = keyLocation(found)
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
  return mapMembers(tree, (one, key) => mapLeaves(one, change, [...path, key]))
}

/** All leaves with their paths. */
export function leavesIn(tree: ConfigTree, path: Path = []): readonly (readonly [LeafNode, Path])[] {
  if (tree.kind === 'leaf') return [[tree, path]]
  const parts = tree.kind === 'list' ? tree.items.entries() : tree.members
  return [...parts].flatMap(([key, part]) => leavesIn(part, [...path, key]))
}

/** Changes the members of a section. Their keys keep their locations. */
export const mapMembers = (
  section: BranchNode,
  change: (member: ConfigTree, key: string) => ConfigTree,
): BranchNode => ({
  ...section,
  members: new Map([...section.members].map(([key, one]) => [key, withKeyAt(change(one, key), keyLocation(one))])),
})

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
  for (const [key, part] of tree.members) {
    if (part.kind === 'leaf' && part.value === null && !keepNull) continue
    value[key] = toPlain(part, [...path, key])
  }
  return value
}

export const withMember = (section: BranchNode, key: string, value: ConfigTree): BranchNode => ({
  ...section,
  members: new Map([...section.members, [key, value]]),
})

export const withoutMember = (section: BranchNode, key: string): BranchNode => ({
  ...section,
  members: new Map([...section.members].filter(([name]) => name !== key)),
})

/** The servers in a document. */
export const serverNodes = (tree: ConfigTree): ReadonlyMap<string, ConfigTree> => membersIn(find(tree, ['mcpServers']))

/** Applies `change` to each server. */
export function mapServers(tree: BranchNode, change: (server: BranchNode, name: string) => BranchNode): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.kind !== 'branch') return tree
  const changed = mapMembers(servers, (one, name) => (one.kind === 'branch' ? change(one, name) : one))
  return withMember(tree, 'mcpServers', changed)
}
