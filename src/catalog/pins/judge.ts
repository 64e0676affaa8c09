import type { Clock } from '../../core/clock.ts'
import type { Denial } from '../../core/decision.ts'
import { denialFor, denialForCrowd } from './denial.ts'
import type { Notices } from './notices.ts'
import { type Pin, type PinKind, type Sight, trustsFirstSight } from './record.ts'
import type { ScanQueue } from './scan-queue.ts'
import type { Shelf } from './shelf.ts'
import { isScanned, type Look, scan, sightOf, verdictOf } from './sight.ts'
import { approvalOf, isReleased, labelOf, type PinState, type PinsMode, stateOf } from './state.ts'

/** What pins say about one definition. */
export interface Pinned {
  readonly usable: boolean
  /** Absent for what is not pinned: resources, our own tools, everything while pins are off. */
  readonly state?: PinState
  /** Set where it is not usable. */
  readonly denial?: Denial
}

/** One name of one server. */
export interface Subject {
  readonly server: string
  readonly kind: PinKind
  readonly name: string
}

export interface JudgeOptions {
  readonly mode: PinsMode
  readonly notices: Notices
  readonly queue: ScanQueue
  /** The scanner has found something in a definition of this server. */
  flagged(server: string): void
  readonly clock: Clock
}

/** A server that invents names must not fill the disk, nor push out the pins of its other names. */
const maxPins = 10_000

/** Compares what is seen with what is pinned, and remembers it. */
export function createJudge(options: JudgeOptions): (shelf: Shelf, subject: Subject, look: Look) => Pinned {
  const { mode, notices, queue, clock } = options

  const pinnedBy = (subject: Subject, pin: Pin, hash: string): Pinned => {
    const usable = mode !== 'quarantine' || isReleased(approvalOf(pin, hash))
    const state = stateOf(subject.server, { ...pin, seen: { ...pin.seen, hash } }, mode)
    return usable ? { usable, state } : { usable, state, denial: denialFor(state) }
  }

  /** Has the scanner look at a definition, and notes beside the pin what it finds. */
  const inspect = (shelf: Shelf, { server, kind, name }: Subject, look: Look): void => {
    const findings = scan(look)
    const verdict = verdictOf(findings)
    const pin = shelf.pin(kind, name)
    if (!pin) return
    const judged = <T extends Sight>(sight: T): T => (sight.hash === look.hash ? { ...sight, ...verdict } : sight)
    shelf.put({ ...pin, approved: pin.approved.map(judged), pending: pin.pending.map(judged) })
    notices.found(server, labelOf(server, kind, name), look.hash, findings)
    if (findings.length > 0) options.flagged(server)
  }

  return (shelf, subject, look) => {
    const { server, kind, name } = subject
    const { hash } = look
    const at = clock.now()
    const pin = shelf.pin(kind, name)
    if (!pin && shelf.size >= maxPins) {
      notices.full(server)
      const pinned = pinnedBy(subject, { kind, name, approved: [], pending: [], seen: { hash, at } }, hash)
      return pinned.denial ? { ...pinned, denial: denialForCrowd(pinned.denial, labelOf(server, kind, name)) } : pinned
    }
    const approval = pin && approvalOf(pin, hash)
    const waiting = pin?.pending.find((sight) => sight.hash === hash)
    const sight = approval ?? waiting ?? sightOf(look, at)
    const seen = pin?.seen.hash === hash ? pin.seen : { hash, at }
    if (!pin) first(shelf, subject, sight)
    else if (approval) {
      if (seen !== pin.seen) shelf.put({ ...pin, seen })
    } else {
      if (!waiting || seen !== pin.seen) shelf.put({ ...pin, pending: [...pin.pending, { ...sight, at }], seen })
      if (pin.approved.length > 0) notices.changed(server, pin, sight)
      else notices.unapproved(server)
    }
    if (!isScanned(sight)) {
      // What is to be kept from callers must be found before they see it.
      if (mode === 'quarantine') inspect(shelf, subject, look)
      else queue.add(() => inspect(shelf, subject, look))
    }
    return pinnedBy(subject, shelf.pin(kind, name) as Pin, hash)
  }

  function first(shelf: Shelf, { server, kind, name }: Subject, sight: Sight): void {
    const trusted = trustsFirstSight(shelf.record)
    const approved = trusted ? [{ ...sight, by: 'first sight' as const }] : []
    shelf.put({ kind, name, approved, pending: trusted ? [] : [sight], seen: { hash: sight.hash, at: sight.at } })
    if (!trusted) notices.unapproved(server)
    else if (shelf.wasKnown) notices.isNew(server, labelOf(server, kind, name))
  }
}
