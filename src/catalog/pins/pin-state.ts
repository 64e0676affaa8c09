import type { ScanFinding } from '../scan/finding.ts'
import type { ToolNames } from '../scan/lookalike-names.ts'
import { scanAmong } from '../scan/scan.ts'
import { changedFields, type DefinitionLine, lineDiff, type MarkedLine, placedLines } from './definition.ts'
import {
  type Approval,
  approvalOf,
  type DefinitionSnapshot,
  isBlocked,
  type Pin,
  type PinKind,
  type ServerPins,
  snapshotIn,
} from './pin-record.ts'

export type PinsMode = 'off' | 'warn' | 'quarantine'

/**
 * The state of a definition. `new`: its server offered it after its first listing, or while it was distrusted. `flagged`:
 * the scanner found something in it. `blocked`: an operator blocked it.
 */
export const pinWords = ['approved', 'new', 'changed', 'flagged', 'blocked'] as const
export type PinWord = (typeof pinWords)[number]

export interface PinState {
  readonly server: string
  readonly kind: PinKind
  readonly name: string
  /** The name that operators use: `server.tool`, `prompt:server.name`, `skill:server.uri` or `instructions:server`. */
  readonly label: string
  readonly state: PinWord
  /** Whether quarantine or an operator blocks the latest definition. */
  readonly quarantined: boolean
  /** The hash of the latest definition. */
  readonly hash: string
  readonly seenAt: number
  readonly approvedAt?: number
  readonly approvedBy?: Approval['by']
  readonly changed: readonly string[]
  /** The scanner's findings in the latest definition. */
  readonly flags: readonly string[]
  /** Hashes of the definitions that await approval, oldest first. */
  readonly pending: readonly string[]
}

export function pinLabel(server: string, kind: PinKind, name: string): string {
  if (kind === 'tool') return `${server}.${name}`
  return kind === 'instructions' ? `instructions:${server}` : `${kind}:${server}.${name}`
}

export function findPin(
  servers: Iterable<ServerPins>,
  label: string,
): { readonly server: string; readonly pin: Pin } | undefined {
  for (const { server, pins } of servers) {
    for (const pin of pins.values()) if (pinLabel(server, pin.kind, pin.name) === label) return { server, pin }
  }
  return undefined
}

export const latestApproval = (pin: Pin): Approval | undefined => pin.approved.toSorted((a, b) => a.at - b.at).at(-1)

/** The state of one of a pin's definitions. After a finding, only an operator can approve it. */
export function wordOf(pin: Pin, hash: string): PinWord {
  const approval = approvalOf(pin, hash)
  if (isBlocked(pin, hash)) return 'blocked'
  if (approval?.by === 'operator') return 'approved'
  if (snapshotIn(pin, hash)?.flags.length) return 'flagged'
  return approval ? 'approved' : pin.approved.length > 0 ? 'changed' : 'new'
}

export function pinStateOf(server: string, pin: Pin, mode: PinsMode): PinState {
  const { kind, name, seen, pending } = pin
  const approval = approvalOf(pin, seen.hash)
  const latest = approval ?? latestApproval(pin)
  const snapshot = snapshotIn(pin, seen.hash)
  const state = wordOf(pin, seen.hash)
  return {
    server,
    kind,
    name,
    label: pinLabel(server, kind, name),
    state,
    quarantined: (mode === 'quarantine' && state !== 'approved') || (mode === 'warn' && state === 'blocked'),
    hash: seen.hash,
    seenAt: seen.at,
    ...(latest && { approvedAt: latest.at, approvedBy: latest.by }),
    changed: approval || !latest ? [] : changedFields(latest.definition, snapshot?.definition),
    flags: snapshot?.flags ?? [],
    pending: pending.map(({ hash }) => hash),
  }
}

/** Whether a definition waits for an operator's decision. */
export const awaitsReview = ({ state }: PinState): boolean => state !== 'approved' && state !== 'blocked'

export const statesOf = (record: ServerPins, mode: PinsMode): PinState[] =>
  [...record.pins.values()]
    .map((pin) => pinStateOf(record.server, pin, mode))
    .sort((a, b) => (a.label < b.label ? -1 : a.label > b.label ? 1 : 0))

/** Whether an operator must check the server as a whole: its origin changed, or its pins were lost. */
export const isUnacknowledged = ({ facts: { acknowledged, distrusted, origins } }: ServerPins): boolean =>
  distrusted > acknowledged || (origins.length > 1 && (origins.at(-1)?.at ?? 0) > acknowledged)

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
    const found = snapshot.definition ? scanAmong(names, { ...pin, server }, snapshot.definition) : []
    const findings = [...found, ...findingsInCutText(snapshot, found)]
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

/** The kinds that were found only in long fields, which are not stored. */
function findingsInCutText({ flags, high }: DefinitionSnapshot, found: readonly ScanFinding[]): ScanFinding[] {
  const others = flags.filter((flag) => found.every(({ kind }) => kind !== flag))
  return others.map((flag) => ({
    kind: flag as ScanFinding['kind'],
    severity: high ? 'high' : 'warn',
    where: '',
    excerpt: '(in text that is too long to keep)',
  }))
}

type StoredDefinition = DefinitionSnapshot['definition']

function linesWith(
  findings: readonly ScanFinding[],
  before: StoredDefinition,
  after: StoredDefinition,
  hasBase: boolean,
) {
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
  const sought = foldSpaces(excerpt.replace(/^…|…$/g, ''))
  const hidden = sought.includes(escapeStart)
  const shares = ({ text }: DefinitionLine) => {
    const own = foldSpaces(text)
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
const foldSpaces = (text: string) => text.toLowerCase().replace(/\s+/g, ' ').trim()
