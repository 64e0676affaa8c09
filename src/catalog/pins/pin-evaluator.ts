import type { Clock } from '../../core/clock.ts'
import type { Denial } from '../../core/decision.ts'
import type { Entry } from '../../core/entry.ts'
import { visible } from '../scan/escape-invisible.ts'
import type { ToolNames } from '../scan/lookalike-names.ts'
import { scanAmong } from '../scan/scan.ts'
import { isScanned, type PinnedDefinition, pinnedDefinitionOf, snapshotOf, verdictOf } from './definition-snapshot.ts'
import type { Notices } from './notices.ts'
import { type DefinitionSnapshot, type Pin, type PinKind, trustsFirstSight } from './pin-record.ts'
import { approvalOf, labelOf, type PinState, type PinsMode, stateOf } from './pin-state.ts'
import type { ServerPinStore } from './pin-store.ts'

export interface Pinned {
  readonly usable: boolean
  /** Absent for entries that are not pinned: resources, Toolway's own tools, and everything while pins are off. */
  readonly state?: PinState
  readonly denial?: Denial
}

export interface PinSubject {
  readonly server: string
  readonly kind: PinKind
  readonly name: string
}

export interface PinEvaluatorOptions {
  readonly mode: PinsMode
  readonly notices: Notices
  readonly queue: ScanQueue
  names(): ToolNames
  flagged(server: string): void
  /** Called when a definition waits for approval. */
  waiting?(server: string): void
  readonly clock: Clock
}

/** Max pins per server. A server that invents names must not fill the disk or displace the pins for its other names. */
const maxPins = 10_000

/** Creates the function that compares a definition with its pin and records that the definition was seen. */
export function createPinEvaluator(
  options: PinEvaluatorOptions,
): (store: ServerPinStore, subject: PinSubject, look: PinnedDefinition) => Pinned {
  const { mode, notices, queue, clock } = options

  const pinnedBy = (subject: PinSubject, pin: Pin, hash: string): Pinned => {
    const state = stateOf(subject.server, { ...pin, seen: { ...pin.seen, hash } }, mode)
    return state.quarantined ? { usable: false, state, denial: denialFor(state) } : { usable: true, state }
  }

  const inspect = (store: ServerPinStore, subject: PinSubject, look: PinnedDefinition): void => {
    const { server, kind, name } = subject
    const findings = scanAmong(options.names(), subject, look.part)
    const verdict = verdictOf(findings)
    const pin = store.pin(kind, name)
    if (!pin) return
    const withVerdict = <T extends DefinitionSnapshot>(snapshot: T): T =>
      snapshot.hash === look.hash ? { ...snapshot, ...verdict } : snapshot
    const before = [...pin.approved, ...pin.pending].find(({ hash }) => hash === look.hash)
    store.put({ ...pin, approved: pin.approved.map(withVerdict), pending: pin.pending.map(withVerdict) })
    // After an upgrade of the scanner, do not report again what an earlier version found.
    const isNews = verdict.flags.some((flag) => !before?.flags.includes(flag)) || (verdict.high && !before?.high)
    if (isNews) notices.found(server, labelOf(server, kind, name), look.hash, findings)
    if (findings.length > 0) options.flagged(server)
  }

  return (store, subject, look) => {
    const { server, kind, name } = subject
    const { hash } = look
    const at = clock.now()
    const pin = store.pin(kind, name)
    if (!pin && store.size >= maxPins) {
      notices.full(server)
      const pinned = pinnedBy(subject, { kind, name, approved: [], pending: [], seen: { hash, at } }, hash)
      return pinned.denial ? { ...pinned, denial: denialForCrowd(pinned.denial, labelOf(server, kind, name)) } : pinned
    }
    const approval = pin && approvalOf(pin, hash)
    const waiting = pin?.pending.find((snapshot) => snapshot.hash === hash)
    const snapshot = approval ?? waiting ?? snapshotOf(look, at)
    const seen = pin?.seen.hash === hash ? pin.seen : { hash, at }
    if (!pin) first(store, subject, snapshot)
    else if (approval) {
      if (seen !== pin.seen) store.put({ ...pin, seen })
    } else {
      if (!waiting || seen !== pin.seen) store.put({ ...pin, pending: [...pin.pending, { ...snapshot, at }], seen })
      if (pin.approved.length > 0) notices.changed(server, pin, snapshot)
      else if (trustsFirstSight(store.record)) notices.isNew(server, labelOf(server, kind, name))
      else notices.unapproved(server)
      options.waiting?.(server)
    }
    if (!isScanned(snapshot)) {
      // In quarantine mode, scan before callers can see the definition.
      if (mode === 'quarantine') inspect(store, subject, look)
      else queue.add(() => inspect(store, subject, look))
    }
    return pinnedBy(subject, store.pin(kind, name) as Pin, hash)
  }

  function first(store: ServerPinStore, { server, kind, name }: PinSubject, snapshot: DefinitionSnapshot): void {
    if (kind === 'tool') options.names().add(server, name, snapshot.definition?.description)
    const { listed } = store.record
    const isTrusted = trustsFirstSight(store.record)
    const trusted = isTrusted && !(listed && mode === 'quarantine')
    const approved = trusted ? [{ ...snapshot, by: 'first sight' as const }] : []
    store.put({
      kind,
      name,
      approved,
      pending: trusted ? [] : [snapshot],
      seen: { hash: snapshot.hash, at: snapshot.at },
    })
    if (!trusted) options.waiting?.(server)
    if (!isTrusted) notices.unapproved(server)
    else if (listed) notices.isNew(server, labelOf(server, kind, name))
  }
}

export function denialFor({ label, state, changed, flags }: PinState): Denial {
  const shown = visible(label)
  const change = `its ${listed(changed)} changed after it was approved`
  const reasons = {
    approved: '',
    blocked: 'an operator blocked its definition',
    new: "nobody has approved it since it is new or its server's pins were lost",
    changed: change,
    flagged: `${changed.length > 0 ? `${change}, and ` : ''}the scanner flagged it (${listed(flags)})`,
  }
  return {
    allowed: false,
    code: 'QUARANTINED',
    rule: 'policy.pins',
    reason: `${shown} is quarantined: ${reasons[state]}. An operator can inspect it with \`toolway pins show ${shown}\` and approve it with \`toolway pins approve ${shown}\`.`,
  }
}

const denialForCrowd = (denial: Denial, label: string): Denial => ({
  ...denial,
  reason: `${visible(label)} is quarantined: its server has offered more names than can be pinned. An operator can limit them with the server's tools.include setting.`,
})

const listed = (words: readonly string[]): string => {
  const shown = words.slice(0, 4).map((word) => visible(word).slice(0, 60))
  if (shown.length < 2) return shown[0] ?? 'definition'
  return `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
}

/** How long scanning new definitions may delay a listing, and how long it may then take per event loop turn. */
const nowMs = 100
const sliceMs = 10

export type ScanQueue = ReturnType<typeof createScanQueue>

/** Runs small jobs immediately while a time budget lasts, and the remaining jobs later, between other work. */
export function createScanQueue() {
  const waiting: (() => void)[] = []
  let spent = 0
  let resetting = false
  let running: Promise<void> | undefined

  const timed = (work: () => void) => {
    const start = performance.now()
    work()
    spent += performance.now() - start
  }

  const rest = async () => {
    while (waiting.length > 0) {
      await new Promise<void>((resolve) => setImmediate(resolve))
      for (const until = performance.now() + sliceMs; waiting.length > 0 && performance.now() < until; )
        waiting.shift()?.()
    }
    running = undefined
  }

  return {
    add(work: () => void) {
      if (!resetting) {
        resetting = true
        setImmediate(() => {
          spent = 0
          resetting = false
        })
      }
      if (spent < nowMs && waiting.length === 0) return timed(work)
      waiting.push(work)
      running ??= rest()
    },
    done: async () => running,
    async [Symbol.asyncDispose]() {
      waiting.length = 0
      await running
    },
  }
}

/** The scanner's findings in definitions that are not pinned. Empty until the scanner has run. */
export function createUnpinnedFlags({
  queue,
  notices,
  names,
  flagged,
}: Pick<PinEvaluatorOptions, 'queue' | 'notices' | 'names' | 'flagged'>): (entry: Entry) => readonly string[] {
  const known = new WeakMap<Entry, readonly string[]>()
  return (entry) => {
    const flags = known.get(entry)
    if (flags) return flags
    known.set(entry, [])
    if (entry.kind === 'tool') names().add(entry.server, entry.name, entry.definition.description)
    queue.add(() => {
      const look = pinnedDefinitionOf(entry.verbatim ?? entry.definition)
      const findings = scanAmong(names(), entry, look.part)
      known.set(entry, verdictOf(findings).flags)
      notices.found(entry.server, `${entry.kind}:${entry.server}.${entry.name}`, look.hash, findings)
      if (findings.length > 0) flagged(entry.server)
    })
    return known.get(entry) ?? []
  }
}
