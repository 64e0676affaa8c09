import { type ConfigProblem, problemAt } from '../problems.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  type LeafNode,
  leaf,
  type SourceLocation,
  type TreeMember,
} from '../tree.ts'
import { unknownKeyAt } from '../validate.ts'

/** Builds a section; undefined parts are omitted. */
export function shape(
  at: SourceLocation,
  parts: Readonly<Record<string, TreeMember | ConfigTree | undefined>>,
): BranchNode {
  const members: [string, TreeMember][] = []
  for (const [key, part] of Object.entries(parts)) {
    if (part !== undefined)
      members.push([key, 'value' in part && !('kind' in part) ? part : { at: part.at, value: part as ConfigTree }])
  }
  return branch(at, members)
}

/** Returns the members of another program's section. Unknown keys are removed and reported as problems. */
export function membersOf(
  section: ConfigTree | undefined,
  known: readonly string[] | undefined,
  report: TranslationReport,
): Map<string, TreeMember> {
  if (section === undefined || (section.kind === 'leaf' && section.value === null)) return new Map()
  if (section.kind !== 'branch') {
    report.problems.push(problemAt(section.at, 'expected a section (key: value)'))
    return new Map()
  }
  const members = new Map(section.members)
  for (const [key, entry] of section.members) {
    if (known === undefined || known.includes(key)) continue
    const problem = unknownKeyAt(entry.at, key, known)
    report.problems.push(problem)
    members.delete(key)
    // Use the value for the suggested key as well, so that a typo is not also reported as a missing key.
    const { suggestion } = problem
    if (suggestion !== undefined && !members.has(suggestion)) members.set(suggestion, entry)
  }
  return members
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
export const instead = (part: LeafNode, value: LeafNode['value']): LeafNode => leaf(part.at, value, part.written)

export interface TranslationReport {
  /** Messages shown by `toolway validate`. */
  readonly notes: string[]
  /** Messages that say what was ignored, and why. */
  readonly warnings: string[]
  readonly problems: ConfigProblem[]
}

export const createReport = (): TranslationReport => ({ notes: [], warnings: [], problems: [] })
