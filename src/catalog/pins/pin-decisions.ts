import { approvalOf, approveSnapshot, blockSnapshot, isBlocked, type Pin, snapshotIn } from './pin-record.ts'
import { findPin, isUnacknowledged, pinLabel, wordOf } from './pin-state.ts'
import type { PinTable, StoredPins } from './pin-table.ts'

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

/**
 * Approves each selected pin's latest definition. Without a label, also acknowledges a new origin or lost pins. Throws if
 * it cannot be saved.
 */
export const approvePins = (table: PinTable, selection: Selection, at: number): Approved[] =>
  table.decide(() => {
    if (selection.label === undefined && selection.server === undefined) table.acknowledgeLoss()
    return [...table.servers.values()].flatMap((stored) => approveServer(table, stored, selection, at))
  })

function approveServer(table: PinTable, stored: StoredPins, selection: Selection, at: number): Approved[] {
  const { server } = stored
  if (selection.server !== undefined && selection.server !== server) return []
  const approved: Approved[] = []
  for (const pin of stored.pins.values()) {
    const label = pinLabel(server, pin.kind, pin.name)
    if (selection.label !== undefined && selection.label !== label) continue
    const hash = selection.hash ?? hashToApprove(pin, selection)
    // If its hash is given, the approval of a definition that was trusted at first sight is recorded, too.
    const isApproved = wordOf(pin, hash) === 'approved' && (!selection.hash || approvalOf(pin, hash)?.by === 'operator')
    const snapshot = isApproved ? undefined : snapshotIn(pin, hash)
    if (!snapshot) continue
    table.put(server, approveSnapshot(pin, snapshot, at))
    approved.push({ label, hash })
  }
  const acknowledges = selection.label === undefined && (approved.length > 0 || isUnacknowledged(stored))
  if (acknowledges) table.putFacts(server, { acknowledged: at })
  if (acknowledges || approved.length > 0) table.decided(stored)
  return approved
}

/** Blocks one definition of a pin, until an operator approves it. Other definitions are not affected. */
export const blockPin = (table: PinTable, label: string, hash: string, at: number): void =>
  table.decide(() => {
    const found = findPin(table.servers.values(), label)
    if (!found || isBlocked(found.pin, hash)) return
    table.put(found.server, blockSnapshot(found.pin, hash, at))
    table.decided(table.of(found.server))
  })

/**
 * The hash to approve: the latest one. If that one is already approved, a label selects the pending one, such as a
 * variant for other clients. Approving everything skips pending ones, which may be changes that were reverted.
 */
function hashToApprove(pin: Pin, { label }: Selection): string {
  const isApproved = wordOf(pin, pin.seen.hash) === 'approved'
  return (isApproved && label !== undefined ? pin.pending.at(-1)?.hash : undefined) ?? pin.seen.hash
}
