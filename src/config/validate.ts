import type * as z from 'zod'
import { problemsOf } from './issues.ts'
import type { ConfigProblem } from './problems.ts'
import { configSchema } from './schema.ts'
import { branch, fits, type Leaf, mapLeaves, type Path, plain, type Tree } from './tree.ts'

type Outcome = { readonly config: z.output<typeof configSchema> } | { readonly problems: readonly ConfigProblem[] }

/** Where programs and servers want text, a number or a flag counts as it was written: 1.10 stays 1.10. */
const textKeys = ['mcpServers.*.args.*', 'mcpServers.*.env.*', 'mcpServers.*.headers.*', 'sinks.*.headers.*']

/** A leaf as programs get it, where they want text. */
export const asText = (part: Leaf, path: Path): Leaf =>
  (typeof part.value === 'number' || typeof part.value === 'boolean') && textKeys.some((pattern) => fits(pattern, path))
    ? { ...part, value: part.written }
    : part

/** Checks a document against the schema and fills in every default. */
export function validate(document: Tree): Outcome {
  const tree = mapLeaves(document, asText)
  // Compiling the schema takes longer than reading the few documents of a run with it as it is.
  const parsed = configSchema.safeParse(plain(tree), { jitless: true })
  if (parsed.success) return { config: parsed.data }
  const unknown = unknownValues(tree)
  const faulty = parsed.error.issues.filter(({ path }) => unknown.has(placeKey(path as Path)))
  // A variable that was left alone says nothing about the value, so the value counts as not given.
  if (faulty.length > 0) return validate(without(tree, new Set(faulty.map(({ path }) => placeKey(path as Path)))))
  return { problems: problemsOf(parsed.error.issues, tree, configSchema) }
}

const placeKey = (path: Path) => path.join('\0')

function unknownValues(tree: Tree): Set<string> {
  const paths = new Set<string>()
  mapLeaves(tree, (part, path) => {
    if (part.variables === 'left') paths.add(placeKey(path))
    return part
  })
  return paths
}

function without(tree: Tree, paths: ReadonlySet<string>, path: Path = []): Tree {
  const kept = (key: string | number) => !paths.has(placeKey([...path, key]))
  if (tree.kind === 'leaf') return tree
  if (tree.kind === 'list') {
    const items = tree.items.flatMap((item, index) => (kept(index) ? [without(item, paths, [...path, index])] : []))
    return { ...tree, items }
  }
  const members = [...tree.members].flatMap(([key, { at, value }]) =>
    kept(key) ? [[key, { at, value: without(value, paths, [...path, key]) }] as const] : [],
  )
  return branch(tree.at, members)
}
