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

/** A section of our own shape; parts that are not there are left out. */
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

/** The members of a foreign section; a key that the dialect does not know is a problem, never silently dropped. */
export function membersOf(
  section: ConfigTree | undefined,
  known: readonly string[] | undefined,
  report: TranslationReport,
): Map<string, TreeMember> {
  if (section === undefined || (section.kind === 'leaf' && section.value === null)) return new Map()
  if (section.kind !== 'branch') {
    report.problems.push(problemAt(section.at, 'expected a section with keys of its own'))
    return new Map()
  }
  const members = new Map(section.members)
  for (const [key, entry] of section.members) {
    if (known === undefined || known.includes(key)) continue
    const problem = unknownKeyAt(entry.at, key, known)
    report.problems.push(problem)
    members.delete(key)
    // Read as what was probably meant, so that one slip is not reported twice as something missing.
    const { suggestion } = problem
    if (suggestion !== undefined && !members.has(suggestion)) members.set(suggestion, entry)
  }
  return members
}

/** The opposite of a flag, also where a variable will hold it. */
export function inverted(part: ConfigTree): ConfigTree {
  if (part.kind !== 'leaf') return part
  if (typeof part.value === 'boolean') return { ...part, value: !part.value }
  const finish = (text: string) => (text === 'true' ? 'false' : text === 'false' ? 'true' : text)
  return typeof part.value === 'string' ? { ...part, finish } : part
}

/** Whether a flag is written out as false. */
export const isFalse = (part: ConfigTree | undefined): boolean => part?.kind === 'leaf' && part.value === false

/** Whether a flag is written out as true. */
export const isTrue = (part: ConfigTree | undefined): boolean => part?.kind === 'leaf' && part.value === true

/** The same place, another value. */
export const instead = (part: LeafNode, value: LeafNode['value']): LeafNode => leaf(part.at, value, part.written)

/** What a translation has to say besides its result. */
export interface TranslationReport {
  /** What was understood, for `toolway validate`. */
  readonly notes: string[]
  /** What was left aside, and why. */
  readonly warnings: string[]
  readonly problems: ConfigProblem[]
}

export const createReport = (): TranslationReport => ({ notes: [], warnings: [], problems: [] })

/** `1 server`, `3 servers`. */
export const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? '' : 's'}`
