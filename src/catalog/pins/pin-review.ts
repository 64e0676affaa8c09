import type { ScanFinding } from '../scan/finding.ts'
import type { ToolNames } from '../scan/lookalike-names.ts'
import { scanAmong } from '../scan/scan.ts'
import { type DefinitionLine, lineDiff, type MarkedLine, placedLines } from './definition-diff.ts'
import { type Approval, type DefinitionSnapshot, isBlocked, type Pin } from './pin-record.ts'
import { latestApproval, type PinWord, wordOf } from './pin-state.ts'

/** A line of a diff, with the numbers of the findings in it. */
export interface ReviewLine {
  readonly mark: MarkedLine[0]
  readonly text: string
  readonly findings: readonly number[]
}

/** A definition as an operator reviews it: what differs from the approved one, and what the scanner finds in it. */
export interface ReviewedDefinition {
  readonly hash: string
  readonly at: number
  readonly state: PinWord
  readonly approvedBy: Approval['by'] | null
  /** Whether the server currently offers this definition. */
  readonly current: boolean
  readonly findings: readonly ScanFinding[]
  /** Compared with the definition that was approved last; all lines are unchanged if it is that one. */
  readonly lines: readonly ReviewLine[]
}

/** All definitions kept for a server's pin, the current one first, then the newest. */
export function reviewPin(server: string, pin: Pin, names: ToolNames): ReviewedDefinition[] {
  const approved = pin.approved.filter(({ hash }) => !isBlocked(pin, hash))
  const base = latestApproval({ ...pin, approved })
  const review = (snapshot: DefinitionSnapshot, by: Approval['by'] | null): ReviewedDefinition => {
    const { hash, at } = snapshot
    const findings = findingsIn(snapshot, (definition) => scanAmong(names, { ...pin, server }, definition))
    const before = base?.hash === hash ? snapshot : base
    const lines = linesWith(findings, before?.definition, snapshot.definition, before !== undefined)
    return { hash, at, state: wordOf(pin, hash), approvedBy: by, current: hash === pin.seen.hash, findings, lines }
  }
  const all = [
    ...pin.approved.map((approval) => review(approval, approval.by)),
    ...pin.pending.map((snapshot) => review(snapshot, null)),
  ]
  return all.sort((a, b) => Number(b.current) - Number(a.current) || b.at - a.at)
}

/** The findings in the stored copy. Long fields are not stored, so the stored flags may name further kinds. */
function findingsIn(
  { definition, flags, high }: DefinitionSnapshot,
  scan: (definition: NonNullable<Definition>) => ScanFinding[],
): ScanFinding[] {
  const findings = definition ? scan(definition) : []
  const others = flags.filter((flag) => findings.every(({ kind }) => kind !== flag))
  const excerpt = '(in text that is too long to keep)'
  return [
    ...findings,
    ...others.map((kind) => ({
      kind: kind as ScanFinding['kind'],
      severity: high ? ('high' as const) : ('warn' as const),
      where: '',
      excerpt,
    })),
  ]
}

type Definition = DefinitionSnapshot['definition']

function linesWith(findings: readonly ScanFinding[], before: Definition, after: Definition, hasBase: boolean) {
  const placed = placedLines(after)
  const found = placed.map((line) => findings.flatMap((finding, index) => (isIn(finding, line, placed) ? [index] : [])))
  const diff = lineDiff(
    hasBase ? placedLines(before).map(({ text }) => text) : [],
    placed.map(({ text }) => text),
  )
  let at = 0
  return diff.map(([mark, text]): ReviewLine => ({ mark, text, findings: mark === '-' ? [] : (found[at++] ?? []) }))
}

/** Whether a finding is in a line. Of a text with several lines, those that share words with the excerpt. */
function isIn({ where, excerpt }: ScanFinding, line: DefinitionLine, all: readonly DefinitionLine[]): boolean {
  if (where === '' || line.where !== where) return false
  const sought = plain(excerpt.replace(/^…|…$/g, ''))
  const hidden = sought.includes(escapeStart)
  const shares = ({ text }: DefinitionLine) => {
    const own = plain(text)
    // The excerpt of a hidden character also quotes the text around it, which may be in other lines.
    if (hidden) return own.includes(escapeStart)
    const words = own.split(' ')
    return (
      own.includes(sought) ||
      words.some((_, at) => sought.includes(words.slice(at, at + phrase).join(' ')) && at + phrase <= words.length)
    )
  }
  return shares(line) || !all.some((other) => other.where === where && shares(other))
}

const escapeStart = '\\u{'
/** How many words in a row a line must share with an excerpt. */
const phrase = 3
const plain = (text: string) => text.toLowerCase().replace(/\s+/g, ' ').trim()
