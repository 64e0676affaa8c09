import { changedFields } from './definition-diff.ts'
import {
  type Approval,
  approvalOf,
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

/** The state of one of a pin's definitions. After a finding, only an operator can approve it. */
export function wordOf(pin: Pin, hash: string): PinWord {
  const approval = approvalOf(pin, hash)
  if (isBlocked(pin, hash)) return 'blocked'
  if (approval?.by === 'operator') return 'approved'
  if (snapshotIn(pin, hash)?.flags.length) return 'flagged'
  return approval ? 'approved' : pin.approved.length > 0 ? 'changed' : 'new'
}

export function stateOf(server: string, pin: Pin, mode: PinsMode): PinState {
  const { kind, name, seen, pending } = pin
  const approval = approvalOf(pin, seen.hash)
  const latest = approval ?? latestApproval(pin)
  const snapshot = snapshotIn(pin, seen.hash)
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

/** Whether an operator must check the server as a whole: its origin changed, or its pins were lost. */
export const isUnacknowledged = ({ facts: { acknowledged, distrusted, origins } }: ServerPins): boolean =>
  distrusted > acknowledged || (origins.length > 1 && (origins.at(-1)?.at ?? 0) > acknowledged)
