import { mergePins } from './merge.ts'
import { keyOf, type Pin, type ServerPins } from './record.ts'
import { approvalOf, isReleased, labelOf } from './state.ts'

/** Which definitions an operator means: one by its label, all of a server, or simply all. */
export interface Selection {
  readonly label?: string
  readonly server?: string
  /** Exactly this definition, and not whatever was seen last. */
  readonly hash?: string
}

/** One definition that an operator has let through. */
export interface Approved {
  readonly label: string
  readonly hash: string
}

const isSelected = ({ label, server }: Selection, of: string, { kind, name }: Pin): boolean =>
  (label === undefined || labelOf(of, kind, name) === label) && (server === undefined || server === of)

/** Lets through what was seen last of every pin that is meant; a whole server is thereby also acknowledged as it is. */
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
    // A first sight needs nobody's word unless something was found in it.
    const sight = known ? (isReleased(known) ? undefined : known) : pin.pending.find(({ hash }) => hash === target)
    if (!sight) continue
    const approval = { ...sight, at, by: 'operator' as const }
    pins.set(keyOf(pin.kind, pin.name), mergePins(pin, { ...pin, approved: [...pin.approved, approval] }))
    approved.push({ label: labelOf(record.server, pin.kind, pin.name), hash: target })
  }
  const whole = selection.label === undefined
  if (approved.length === 0 && !(whole && isUnacknowledged(record))) return { record, approved }
  return { record: { ...record, pins, ...(whole && { acknowledged: at }) }, approved }
}

/**
 * What was seen last. Where that is fine, whoever names this one definition means what waits beside it, such as a variant
 * for other clients; whoever approves everything does not mean a change that has been taken back.
 */
function meant({ seen, pending, approved }: Pin, { label }: Selection): string {
  const fine = isReleased(approved.find(({ hash }) => hash === seen.hash))
  return (fine && label !== undefined ? pending.at(-1)?.hash : undefined) ?? seen.hash
}

/** Whether something about the server as a whole waits for an operator: it comes from elsewhere, or its pins were lost. */
export const isUnacknowledged = ({ acknowledged, distrusted, origins }: ServerPins): boolean =>
  distrusted > acknowledged || (origins.length > 1 && (origins.at(-1)?.at ?? 0) > acknowledged)
