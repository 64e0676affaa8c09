/** A node of the syntax tree: its fields, or one member with the name of its kind that holds them. */
export type Node = Readonly<Record<string, unknown>>

/** Walks a whole tree without recursion, however deep it is. `visit` sees each member that is a node or a list. */
export function walk(tree: Node, visit: (name: string, value: Node | readonly Node[]) => void): void {
  const open: unknown[] = [tree]
  while (open.length > 0) {
    const node = open.pop()
    if (Array.isArray(node)) {
      for (const item of node) open.push(item)
    } else if (typeof node === 'object' && node !== null) {
      for (const [name, value] of Object.entries(node)) {
        if (typeof value !== 'object' || value === null) continue
        visit(name, value)
        open.push(value)
      }
    }
  }
}

/** The names in a list of nodes; `*` and subscripts count as `undefined`. */
export function namesIn(list: unknown): (string | undefined)[] {
  if (!Array.isArray(list)) return []
  return list.map((node: { String?: { sval?: string } }) => node.String && (node.String.sval ?? ''))
}

const nameFields = new Set(['sval', 'aliasname', 'name', 'relname', 'schemaname', 'catalogname', 'colname'])

/** Names of tables, columns, functions and aliases in a tree; literals are not among them. */
export function namesUsed(tree: Node): readonly string[] {
  const found: string[] = []
  walk(tree, (kind, value) => {
    // The text of a literal is in a field of the same name.
    if (Array.isArray(value) || kind === 'sval') return
    for (const [field, name] of Object.entries(value as Node)) {
      if (typeof name === 'string' && nameFields.has(field)) found.push(name)
    }
  })
  return found
}
