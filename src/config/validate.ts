import type * as z from 'zod'
import { isSecretName } from '../core/secret-name.ts'
import { nearMiss } from '../lib/similar-text.ts'
import { type ConfigProblem, mayHoldSecret, problemAt } from './problems.ts'
import { configSchema } from './schema.ts'
import { knownKeysAt, type SecretKind, secretKindAt } from './schema-lookup.ts'
import {
  branch,
  type ConfigTree,
  find,
  keyPath,
  type LeafNode,
  leavesIn,
  locationOf,
  mapLeaves,
  mapMembers,
  matchesPath,
  type Path,
  toPlain,
} from './tree.ts'

type Outcome = { readonly config: z.output<typeof configSchema> } | { readonly problems: readonly ConfigProblem[] }

/** Keys whose values are text: numbers and booleans keep their spelling there, so that 1.10 does not become 1.1. */
const textKeys = ['mcpServers.*.args.*', 'mcpServers.*.env.*', 'mcpServers.*.headers.*', 'sinks.*.headers.*']

export const asText = (part: LeafNode, path: Path): LeafNode =>
  (typeof part.value === 'number' || typeof part.value === 'boolean') &&
  textKeys.some((pattern) => matchesPath(pattern, path))
    ? { ...part, value: part.written }
    : part

export function validate(document: ConfigTree): Outcome {
  const tree = mapLeaves(document, asText)
  // Set `jitless`: without it, zod compiles the schema, which takes longer than parsing the few documents in one run.
  const parsed = configSchema.safeParse(toPlain(tree), { jitless: true })
  if (parsed.success) return { config: parsed.data }
  const unknown = new Set(leavesIn(tree).flatMap(([part, path]) => (part.variables === 'left' ? [placeKey(path)] : [])))
  const faulty = parsed.error.issues.filter(({ path }) => unknown.has(placeKey(path as Path)))
  // The value of an unexpanded variable is unknown, so validate again as if these keys were missing.
  if (faulty.length > 0) return validate(without(tree, new Set(faulty.map(({ path }) => placeKey(path as Path)))))
  return { problems: problemsOf(parsed.error.issues, tree, configSchema) }
}

/** What the dashboard shows in the place of a secret. */
export const secretPlaceholder = /<secret [0-9a-f]{8}>/

/** Reports placeholders for secrets: somebody has copied a text in which the dashboard has hidden the secrets. */
export function placeholderProblems(tree: ConfigTree): ConfigProblem[] {
  return leavesIn(tree).flatMap(([{ value }, path]) => {
    const [found] = secretPlaceholder.exec(String(value)) ?? []
    if (found === undefined) return []
    const message = `expected a value, found the placeholder ${found}, which stands for a secret; write the secret itself or a reference to it`
    return [problemAt(locationOf(tree, path), message, { key: keyPath(path) })]
  })
}

const placeKey = (path: Path) => path.join('\0')

function without(tree: ConfigTree, paths: ReadonlySet<string>, path: Path = []): ConfigTree {
  const kept = (key: string | number) => !paths.has(placeKey([...path, key]))
  if (tree.kind === 'leaf') return tree
  if (tree.kind === 'list') {
    const items = tree.items.flatMap((item, index) => (kept(index) ? [without(item, paths, [...path, index])] : []))
    return { ...tree, items }
  }
  const members = [...tree.members].filter(([key]) => kept(key))
  return mapMembers(branch(tree.at, members), (value, key) => without(value, paths, [...path, key]))
}

type Issue = z.core.$ZodIssue

const kinds: Readonly<Record<string, string>> = {
  string: 'text',
  object: 'a section (key: value)',
  record: 'a section (key: value)',
  array: 'a list',
}

function problemsOf(issues: readonly Issue[], tree: ConfigTree, schema: z.core.$ZodType): ConfigProblem[] {
  const misspelt = new Set(
    issues.filter(({ code }) => code === 'unrecognized_keys').map(({ path }) => keyPath(path as Path)),
  )
  return issues.flatMap((issue) => {
    const path = issue.path as Path
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(tree, schema, path, key))
    // Do not report a missing `command` if it is only misspelt.
    if (issue.code === 'custom' && misspelt.has(keyPath(path))) return []
    return [wrongValue(issue, tree, path)]
  })
}

function unknownKey(tree: ConfigTree, schema: z.core.$ZodType, path: Path, key: string): ConfigProblem {
  const known = knownKeysAt(schema, path)
  return unknownKeyAt(locationOf(tree, [...path, key]), key, known, keyPath([...path, key]))
}

export function unknownKeyAt(
  place: Parameters<typeof problemAt>[0],
  key: string,
  known: readonly string[],
  path?: string,
) {
  const suggestion = nearMiss(key, known)
  const expected = `one of ${known.join(', ')}`
  const help = suggestion === undefined ? `expected ${expected}` : `did you mean \`${suggestion}\`?`
  return problemAt(place, `unknown key \`${key}\`; ${help}`, { key: path, expected, found: key, suggestion })
}

function wrongValue(issue: Issue, tree: ConfigTree, path: Path): ConfigProblem {
  const expected = expectation(issue)
  const found = issue.code === 'invalid_key' ? JSON.stringify(path.at(-1)) : shown(tree, path)
  const suggestion = suggest(issue, tree, path)
  const help = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
  const message = `expected ${expected}, found ${found}${help}`
  return problemAt(locationOf(tree, path), message, { key: keyPath(path), expected, found, suggestion })
}

function expectation(issue: Issue): string {
  if (issue.code === 'invalid_key') return issue.issues[0]?.message ?? 'another name'
  const options = optionsOf(issue)
  if (options) return options.length === 1 ? String(options[0]) : `one of ${options.join(', ')}`
  if (issue.code === 'too_small')
    return `a list with at least ${issue.minimum === 1 ? 'one item' : `${issue.minimum} items`}`
  // Messages defined in the schema already say what is expected; zod's own messages start with "Invalid input".
  if (!issue.message.startsWith('Invalid input')) return issue.message
  return issue.code === 'invalid_type' ? (kinds[issue.expected] ?? issue.expected) : 'another value'
}

function optionsOf(issue: Issue): readonly unknown[] | undefined {
  if (issue.code === 'invalid_value') return issue.values
  return issue.code === 'invalid_union' && 'options' in issue ? (issue.options as readonly unknown[]) : undefined
}

function suggest(issue: Issue, tree: ConfigTree, path: Path): string | undefined {
  if (issue.code === 'custom') return issue.params?.hint as string | undefined
  if (issue.code === 'invalid_key' && path.length === 2 && path[0] === 'mcpServers') return plainName(String(path[1]))
  const options = optionsOf(issue)
  const found = find(tree, path)
  if (!options || found?.kind !== 'leaf' || found.variables === 'filled') return undefined
  return nearMiss(String(found.value), options.map(String))
}

/** The most similar valid server name. Undefined if the name is already valid or has no valid characters. */
export function plainName(name: string): string | undefined {
  const plain = name
    .replace(/[^A-Za-z0-9_.-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 64)
  return plain === '' || plain === name ? undefined : plain
}

/** Describes a value for error messages, without revealing an expanded variable or a likely secret. */
function shown(tree: ConfigTree, path: Path): string {
  const found = find(tree, path)
  if (found === undefined) return 'nothing'
  if (found.kind === 'list') return 'a list'
  if (found.kind === 'branch')
    return found.members.size === 0 ? 'an empty section' : `a section with ${[...found.members.keys()].join(', ')}`
  if (found.value === null) return 'nothing'
  if (isSecretName(String(path.at(-1))) || isWithinSecret(path)) {
    return found.value === '' ? 'an empty string' : `a ${typeof found.value}`
  }
  if (found.variables === 'filled') return `the value of the variables in ${found.written}`
  if (found.value === '') return 'an empty string'
  if (typeof found.value !== 'string') return String(found.value)
  return mayHoldSecret(found.value) ? 'a string' : JSON.stringify(found.value)
}

const hiddenKinds: ReadonlySet<SecretKind | undefined> = new Set([true, 'digest', 'variables', 'headers'])

const isWithinSecret = (path: Path): boolean =>
  path.some((_, index) => hiddenKinds.has(secretKindAt(path.slice(0, index + 1))))
