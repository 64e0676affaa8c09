import { isAlias, isMap, isScalar, isSeq, type Node, type ParsedNode, parseDocument, type YAMLMap } from 'yaml'
import {
  branch,
  type ConfigTree,
  keyLocation,
  keyPath,
  leaf,
  type Path,
  type Scalar,
  type SourceFile,
  withKeyAt,
} from '../tree.ts'
import { createBounds, type Parsed, RejectedDocument, type SyntaxFault } from './parsed.ts'

const sentences: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'a file must contain only one document; remove the ---',
  RESOURCE_EXHAUSTION: 'nested too deep',
}

/** Parses YAML 1.2 with anchors and merge keys. Duplicate keys are rejected. */
export function parseYaml(file: SourceFile): Parsed {
  const document = parseDocument(file.text, { prettyErrors: false, uniqueKeys: false, stringKeys: false })
  // Treat warnings as errors: the parser only warns about an unknown tag such as !secret, but the value would be wrong.
  const faults = [...document.errors, ...document.warnings]
  const first = faults[0]
  if (first) return { errors: [{ message: sentences[first.code] ?? sentence(first.message), offset: first.pos[0] }] }
  if (document.contents === null) return { errors: [] }
  const errors: SyntaxFault[] = []
  const check = createBounds()
  const anchors = new Map<string, Node>()
  const targets = new Map<Node, Node>()
  let unfolding = 0

  const build = (node: Node | null | undefined, path: Path, offset: number): ConfigTree => {
    const here = (node as ParsedNode | null)?.range?.[0] ?? offset
    if (unfolding === 0 && node && 'anchor' in node && node.anchor) anchors.set(node.anchor, node)
    check(path, here)
    const at = { file, offset: here, key: keyPath(path) }
    if (isAlias(node)) {
      // Resolve aliases here: the library searches the whole document for each one, which can take minutes.
      const target = targets.get(node) ?? anchors.get(node.source)
      if (!target) throw new RejectedDocument(`unknown anchor ${node.source}`, here)
      targets.set(node, target)
      unfolding++
      const unfolded = build(target, path, here)
      unfolding--
      return unfolded
    }
    if (isMap(node)) return branch(at, membersOf(node, path))
    if (isSeq(node))
      return { kind: 'list', at, items: node.items.map((item, index) => build(item as Node, [...path, index], here)) }
    if (isScalar(node)) return leaf(at, scalar(node.value), node.source ?? String(node.value))
    return leaf(at, null)
  }

  const membersOf = (map: YAMLMap, path: Path): Map<string, ConfigTree> => {
    const members = new Map<string, ConfigTree>()
    const merged: ConfigTree[] = []
    for (const { key: keyNode, value: valueNode } of map.items) {
      const offset = (keyNode as ParsedNode | null)?.range?.[0] ?? 0
      if (!isScalar(keyNode)) {
        errors.push({ message: 'a key must be a scalar', offset, key: keyPath(path) })
        continue
      }
      const key = typeof keyNode.value === 'string' ? keyNode.value : (keyNode.source ?? String(keyNode.value))
      const here = [...path, key]
      const keyAt = { file, offset, key: keyPath(here) }
      const entry = withKeyAt(build(valueNode as Node, here, offset), keyAt)
      if (key === '<<' && keyNode.type === 'PLAIN') merged.push(entry)
      else if (members.has(key)) errors.push({ message: 'duplicate key', offset, key: keyAt.key })
      else members.set(key, entry)
    }
    // The map's own keys override merged ones.
    for (const part of merged) {
      for (const source of part.kind === 'list' ? part.items : [part]) {
        if (source.kind !== 'branch') {
          errors.push({ message: 'only maps can be merged in with <<', ...keyLocation(part) })
        } else for (const [key, inherited] of source.members) if (!members.has(key)) members.set(key, inherited)
      }
    }
    return members
  }

  return { tree: build(document.contents, [], 0), errors }
}

const scalar = (value: unknown): Scalar =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === null
    ? value
    : String(value)

const sentence = (message: string) => message.charAt(0).toLowerCase() + message.slice(1)
