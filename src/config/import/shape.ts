import { nearMiss } from '../../lib/similar-text.ts'
import { type ConfigProblem, problemAt } from '../problems.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  find,
  itemsIn,
  keyLocation,
  type LeafNode,
  leaf,
  leafText,
  membersIn,
  type SourceLocation,
  withKeyAt,
  withoutMember,
} from '../tree.ts'
import { unknownKeyAt } from '../validate.ts'

/** Builds a section; undefined parts are omitted. */
export const shape = (at: SourceLocation, parts: Readonly<Record<string, ConfigTree | undefined>>): BranchNode =>
  branch(
    at,
    Object.entries(parts).flatMap(([key, part]) => (part ? [[key, part] as const] : [])),
  )

/** Returns the members of another program's section. Unknown keys are removed and reported as problems. */
export function expectedMembers(
  section: ConfigTree | undefined,
  known: readonly string[],
  report: TranslationReport,
): Map<string, ConfigTree> {
  const members = sectionMembers(section, report)
  for (const [key, part] of members) {
    if (known.includes(key)) continue
    const problem = unknownKeyAt(keyLocation(part), key, known)
    report.problems.push(problem)
    members.delete(key)
    // Use the value for the suggested key as well, so that a typo is not also reported as a missing key.
    const { suggestion } = problem
    if (suggestion !== undefined && !members.has(suggestion)) members.set(suggestion, part)
  }
  return members
}

/** The members of a section that may be empty. Reports any other value. */
export function sectionMembers(section: ConfigTree | undefined, report: TranslationReport): Map<string, ConfigTree> {
  const isEmpty = section === undefined || (section.kind === 'leaf' && section.value === null)
  if (!isEmpty && section.kind !== 'branch') {
    report.problems.push(problemAt(section.at, 'expected a section (key: value)'))
  }
  return new Map(membersIn(section))
}

/** Negates a boolean, even if its value comes from a variable. */
export function inverted(part: ConfigTree): ConfigTree {
  if (part.kind !== 'leaf') return part
  if (typeof part.value === 'boolean') return { ...part, value: !part.value }
  const finish = (text: string) => (text === 'true' ? 'false' : text === 'false' ? 'true' : text)
  return typeof part.value === 'string' ? { ...part, finish } : part
}

export const isFalse = (part: ConfigTree | undefined): boolean => part?.kind === 'leaf' && part.value === false

export const isTrue = (part: ConfigTree | undefined): boolean => part?.kind === 'leaf' && part.value === true

/** Applies `change` to a string; other values stay the same. */
export const mapText = <Part extends ConfigTree>(part: Part, change: (text: string) => string): Part | LeafNode =>
  part.kind === 'leaf' && typeof part.value === 'string' ? instead(part, change(part.value)) : part

/** Replaces the value and keeps the source location. */
export const instead = ({ at, keyAt, written }: LeafNode, value: LeafNode['value']): LeafNode => ({
  ...leaf(at, value, written),
  ...(keyAt && { keyAt }),
})

export interface TranslationReport {
  /** Messages shown by `toolway validate`. */
  readonly notes: string[]
  /** Messages that say what was ignored, and why. */
  readonly warnings: string[]
  readonly problems: ConfigProblem[]
}

/** Formats of files that belong to other programs. These files usually list Toolway as a server too. */
const foreignDialects = ['mcpServers', 'vscode', 'claude-code', 'codex', 'opencode', 'gemini', 'zed'] as const

export type ConfigDialect =
  | 'toolway'
  | 'gateway-rules'
  | 'mcp-client'
  | 'mcp-endpoints'
  | (typeof foreignDialects)[number]

export const isForeign = (dialect: ConfigDialect): boolean => (foreignDialects as readonly string[]).includes(dialect)

/** A format of configuration files, and how it is converted to Toolway's. Nodes keep their source locations. */
export interface FormatReader {
  readonly dialect: ConfigDialect
  recognises(tree: BranchNode): boolean
  translate(tree: BranchNode, report: TranslationReport, home: string): BranchNode
}

export const createReport = (): TranslationReport => ({ notes: [], warnings: [], problems: [] })

/** Sections that cause an error, because ignoring one of them could allow what the author meant to forbid. */
const neverIgnored = ['agents', 'policy', 'auth', 'limits', 'mcpServers']

/**
 * Reports the sections that are not in `known`. Those in `neverIgnored`, and those whose names look like a misspelt
 * known name, are errors. All others belong to another program, so they are ignored with a warning.
 */
export function otherSections(tree: BranchNode, known: readonly string[], report: TranslationReport): void {
  const ignored: string[] = []
  for (const [key, part] of tree.members) {
    const at = keyLocation(part)
    if (known.includes(key)) continue
    if (neverIgnored.includes(key)) {
      const message = `Toolway's own section ${key} has no effect in a file with ${known.find((name) => tree.members.has(name))}; put it in a separate file and pass both with --config`
      report.problems.push(problemAt(at, message))
    } else if (nearMiss(key, known) !== undefined) report.problems.push(unknownKeyAt(at, key, known))
    else ignored.push(key)
  }
  if (ignored.length > 0) {
    report.warnings.push(
      `${tree.at.file.path}: ${ignored.join(', ')} ignored: these settings do not concern servers or tools`,
    )
  }
}

/** Converts a list of `{name, …}` entries to servers. Two dialects list their servers in this form. */
export function namedServers(
  servers: ConfigTree | undefined,
  translate: (name: string, fields: BranchNode) => BranchNode,
  report: TranslationReport,
): BranchNode | undefined {
  if (servers === undefined) return undefined
  if (servers.kind !== 'list' && !(servers.kind === 'leaf' && servers.value === null)) {
    report.problems.push(problemAt(servers.at, 'expected a list of servers'))
  }
  const named = new Map<string, ConfigTree>()
  for (const entry of itemsIn(servers)) {
    const nameLeaf = find(entry, ['name'])
    const name = leafText(nameLeaf)
    if (entry.kind !== 'branch' || !nameLeaf || !name) {
      report.problems.push(problemAt((nameLeaf ?? entry).at, 'expected a server with a name'))
    } else if (named.has(name)) {
      report.problems.push(problemAt(nameLeaf.at, `duplicate server name ${name}; choose another name`))
    } else named.set(name, withKeyAt(translate(name, withoutMember(entry, 'name')), nameLeaf.at))
  }
  return branch(servers.at, named)
}
