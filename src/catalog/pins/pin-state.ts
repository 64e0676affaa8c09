import { changedFields } from './definition-diff.ts'
import {
  type Approval,
  type DefinitionSnapshot,
  isBlocked,
  keyOf,
  mergePins,
  type Pin,
  type PinKind,
  type ServerPins,
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
  /** The name that operators use: `server.tool`, `prompt:server.name` or `instructions:server`. */
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

export function labelOf(server: string, kind: PinKind, name: string): string {
  if (kind === 'tool') return `${server}.${name}`
  return kind === 'prompt' ? `prompt:${server}.${name}` : `instructions:${server}`
}

export function findPin(
  servers: Iterable<ServerPins>,
  label: string,
): { readonly server: string; readonly pin: Pin } | undefined {
  for (const { server, pins } of servers) {
    for (const pin of pins.values()) if (labelOf(server, pin.kind, pin.name) === label) return { server, pin }
  }
  return undefined
}

export const latestApproval = (pin: Pin): Approval | undefined => pin.approved.toSorted((a, b) => a.at - b.at).at(-1)

export const approvalOf = (pin: Pin, hash: string): Approval | undefined =>
  pin.approved.find((approval) => approval.hash === hash)

const snapshotOf = (pin: Pin, hash: string): DefinitionSnapshot | undefined =>
  approvalOf(pin, hash) ?? pin.pending.find((snapshot) => snapshot.hash === hash)

/** The state of one of a pin's definitions. After a finding, only an operator can approve it. */
export function wordOf(pin: Pin, hash: string): PinWord {
  const approval = approvalOf(pin, hash)
  if (isBlocked(pin, hash)) return 'blocked'
  if (approval?.by === 'operator') return 'approved'
  if (snapshotOf(pin, hash)?.flags.length) return 'flagged'
  return approval ? 'approved' : pin.approved.length > 0 ? 'changed' : 'new'
}

export function stateOf(server: string, pin: Pin, mode: PinsMode): PinState {
  const { kind, name, seen, pending } = pin
  const approval = approvalOf(pin, seen.hash)
  const latest = approval ?? latestApproval(pin)
  const snapshot = snapshotOf(pin, seen.hash)
  const state = wordOf(pin, seen.hash)
  return {
    server,
    kind,
    name,
    label: labelOf(server, kind, name),
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
export const isOpen = ({ state }: PinState): boolean => state !== 'approved' && state !== 'blocked'

export const statesOf = (record: ServerPins, mode: PinsMode): PinState[] =>
  [...record.pins.values()]
    .map((pin) => stateOf(record.server, pin, mode))
    .sort((a, b) => (a.label < b.label ? -1 : a.label > b.label ? 1 : 0))

/** The definitions to approve: one, by its label; all of a server's definitions; or all definitions. */
export interface Selection {
  readonly label?: string
  readonly server?: string
  /** The hash of the definition to approve. Default: the latest definition. */
  readonly hash?: string
}

export interface Approved {
  readonly label: string
  readonly hash: string
}

const isSelected = ({ label, server }: Selection, of: string, { kind, name }: Pin): boolean =>
  (label === undefined || labelOf(of, kind, name) === label) && (server === undefined || server === of)

/** Approves each selected pin's latest definition. Without a label, also acknowledges a new origin or lost pins. */
export function approveIn(
  record: ServerPins,
  selection: Selection,
  at: number,
): { readonly record: ServerPins; readonly approved: readonly Approved[] } {
  if (selection.server !== undefined && selection.server !== record.server) return { record, approved: [] }
  const pins = new Map(record.pins)
  const approved: Approved[] = []
  for (const pin of record.pins.values()) {
    if (!isSelected(selection, record.server, pin)) continue
    const target = selection.hash ?? meant(pin, selection)
    const known = approvalOf(pin, target)
    // If its hash is given, the approval of a definition that was trusted at first sight is recorded, too.
    const isApproved = wordOf(pin, target) === 'approved' && (!selection.hash || known?.by === 'operator')
    const snapshot = isApproved ? undefined : snapshotOf(pin, target)
    if (!snapshot) continue
    const approval = { ...snapshot, at, by: 'operator' as const }
    const lifted = pin.blocked?.map((block) =>
      block.hash === target ? { ...block, lifted: Math.max(at, block.at) } : block,
    )
    const next = { ...pin, approved: [...pin.approved, approval], ...(lifted && { blocked: lifted }) }
    pins.set(keyOf(pin.kind, pin.name), mergePins(pin, next))
    approved.push({ label: labelOf(record.server, pin.kind, pin.name), hash: target })
  }
  const whole = selection.label === undefined
  if (approved.length === 0 && !(whole && isUnacknowledged(record))) return { record, approved }
  return { record: { ...record, pins, ...(whole && { acknowledged: at }) }, approved }
}

/** Blocks one definition of a pin: nobody can use it until an operator approves it. Other definitions are not affected. */
export function blockIn(record: ServerPins, label: string, hash: string, at: number): ServerPins {
  const pin = [...record.pins.values()].find(({ kind, name }) => labelOf(record.server, kind, name) === label)
  if (!pin || isBlocked(pin, hash)) return record
  const lifted = pin.blocked?.find((block) => block.hash === hash)?.lifted ?? 0
  const block = { hash, at: Math.max(at, lifted + 1) }
  const next = mergePins(pin, { ...pin, blocked: [...(pin.blocked ?? []), block] })
  return { ...record, pins: new Map(record.pins).set(keyOf(pin.kind, pin.name), next) }
}

/**
 * The hash to approve: the latest one. If that one is already approved, a label selects the pending one, such as a
 * variant for other clients. Approving everything skips pending ones, which may be changes that were reverted.
 */
function meant(pin: Pin, { label }: Selection): string {
  const isApproved = wordOf(pin, pin.seen.hash) === 'approved'
  return (isApproved && label !== undefined ? pin.pending.at(-1)?.hash : undefined) ?? pin.seen.hash
}

/** Whether an operator must check the server as a whole: its origin changed, or its pins were lost. */
export const isUnacknowledged = ({ acknowledged, distrusted, origins }: ServerPins): boolean =>
  distrusted > acknowledged || (origins.length > 1 && (origins.at(-1)?.at ?? 0) > acknowledged)
