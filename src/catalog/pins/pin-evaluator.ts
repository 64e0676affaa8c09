import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Clock } from '../../core/clock.ts'
import type { Denial } from '../../core/decision.ts'
import type { Entry } from '../../core/entry.ts'
import type { Log } from '../../core/log.ts'
import { findingText, type ScanFinding, visible } from '../scan/finding.ts'
import type { ToolNames } from '../scan/lookalike-names.ts'
import { isFlag, scanAmong } from '../scan/scan.ts'
import { firstTimes } from '../snapshot.ts'
import {
  isScanned,
  type PinnedDefinition,
  pinnedDefinitionOf,
  snapshotOf,
  summarizeChanges,
  verdictOf,
} from './definition.ts'
import {
  addPending,
  approvalOf,
  type DefinitionSnapshot,
  type Pin,
  type PinKind,
  snapshotIn,
  trustsFirstSight,
} from './pin-record.ts'
import { latestApproval, type PinState, type PinsMode, pinLabel, pinStateOf } from './pin-state.ts'
import type { PinTable, StoredPins } from './pin-table.ts'

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
  waiting(): void
  readonly clock: Pick<Clock, 'now'>
}

/** Max pins per server. A server that invents names must not fill the disk or displace the pins for its other names. */
const maxPins = 10_000

/** Compares definitions with their pins and records that they were seen. */
export class PinEvaluator {
  readonly #options: PinEvaluatorOptions
  readonly #table: PinTable

  constructor(table: PinTable, options: PinEvaluatorOptions) {
    this.#table = table
    this.#options = options
  }

  evaluate(subject: PinSubject, look: PinnedDefinition): Pinned {
    const { server, kind, name } = subject
    const { hash } = look
    const { mode, notices, queue, clock } = this.#options
    const stored = this.#table.of(server)
    const pin = stored.pin(kind, name)
    const seen = pin?.seen.hash === hash ? pin.seen : { hash, at: clock.now() }
    if (!pin && stored.pins.size >= maxPins) {
      notices.full(server)
      const pinned = this.#pinned(server, { kind, name, approved: [], pending: [], seen })
      return pinned.denial ? { ...pinned, denial: denialForCrowd(pinned.denial, pinLabel(server, kind, name)) } : pinned
    }
    const snapshot = (pin && snapshotIn(pin, hash)) ?? snapshotOf(look, seen.at)
    if (!pin) this.#addPin(stored, subject, snapshot)
    else {
      const next = addPending(pin, snapshot)
      if (next !== pin || seen !== pin.seen) this.#table.put(server, { ...next, seen })
      if (!approvalOf(pin, hash)) this.#noteWaiting(stored, pin, snapshot)
    }
    if (!isScanned(snapshot)) {
      // In quarantine mode, scan before callers can see the definition.
      if (mode === 'quarantine') this.#scan(subject, look)
      else queue.add(() => this.#scan(subject, look))
    }
    return this.#pinned(server, { ...(stored.pin(kind, name) as Pin), seen })
  }

  #pinned(server: string, pin: Pin): Pinned {
    const state = pinStateOf(server, pin, this.#options.mode)
    return state.quarantined ? { usable: false, state, denial: denialFor(state) } : { usable: true, state }
  }

  #addPin(stored: StoredPins, { server, kind, name }: PinSubject, snapshot: DefinitionSnapshot): void {
    const { mode, notices, names, waiting } = this.#options
    if (kind === 'tool') names().add(server, name, snapshot.definition?.description)
    const trustsNew = trustsFirstSight(stored.facts)
    const trusted = trustsNew && !(stored.facts.listed && mode === 'quarantine')
    const approved = trusted ? [{ ...snapshot, by: 'first sight' as const }] : []
    const seen = { hash: snapshot.hash, at: snapshot.at }
    this.#table.put(server, { kind, name, approved, pending: trusted ? [] : [snapshot], seen })
    if (!trusted) waiting()
    if (!trustsNew) notices.unapproved(server)
    else if (stored.facts.listed) notices.isNew(server, pinLabel(server, kind, name))
  }

  #noteWaiting(stored: StoredPins, pin: Pin, snapshot: DefinitionSnapshot): void {
    const { notices, waiting } = this.#options
    const { server } = stored
    if (pin.approved.length > 0) notices.changed(server, pin, snapshot)
    else if (trustsFirstSight(stored.facts)) notices.isNew(server, pinLabel(server, pin.kind, pin.name))
    else notices.unapproved(server)
    waiting()
  }

  #scan(subject: PinSubject, look: PinnedDefinition): void {
    const { server, kind, name } = subject
    const { notices, names, flagged } = this.#options
    const findings = scanAmong(names(), subject, look.part)
    const verdict = verdictOf(findings)
    const pin = this.#table.of(server).pin(kind, name)
    if (!pin) return
    const before = snapshotIn(pin, look.hash)
    const withVerdict = <T extends DefinitionSnapshot>(snapshot: T): T =>
      snapshot.hash === look.hash ? { ...snapshot, ...verdict } : snapshot
    this.#table.put(server, {
      ...pin,
      approved: pin.approved.map(withVerdict),
      pending: pin.pending.map(withVerdict),
    })
    // After an upgrade of the scanner, do not report again what an earlier version found.
    const isNews = verdict.flags.some((flag) => !before?.flags.includes(flag)) || (verdict.high && !before?.high)
    if (isNews) notices.found(server, pinLabel(server, kind, name), look.hash, findings)
    if (findings.length > 0) flagged(server)
  }
}

export function denialFor({ label, state, changed, flags }: PinState): Denial {
  const shown = visible(label)
  const change = `its ${joinWords(changed)} changed after it was approved`
  const reasons = {
    approved: '',
    blocked: 'an operator blocked its definition',
    new: "nobody has approved it since it is new or its server's pins were lost",
    changed: change,
    flagged: `${changed.length > 0 ? `${change}, and ` : ''}the scanner flagged it (${joinWords(flags)})`,
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

const joinWords = (words: readonly string[]): string => {
  const shown = words.slice(0, 4).map((word) => visible(word).slice(0, 60))
  if (shown.length < 2) return shown[0] ?? 'definition'
  return `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
}

/** How long scanning new definitions may delay a listing, and how long it may then take per event loop turn. */
const nowMs = 100
const scanSliceMs = 10

export type ScanQueue = ReturnType<typeof createScanQueue>

/** Runs small jobs immediately while a time budget lasts, and the remaining jobs later, between other work. */
export function createScanQueue() {
  const waiting: (() => void)[] = []
  /** The time that jobs have taken in this iteration of the event loop. */
  let spent = 0
  let running: Promise<void> | undefined

  const rest = async () => {
    while (waiting.length > 0) {
      await nextIteration()
      for (const until = performance.now() + scanSliceMs; waiting.length > 0 && performance.now() < until; )
        waiting.shift()?.()
    }
    running = undefined
  }

  return {
    add(work: () => void) {
      if (spent === 0) {
        setImmediate(() => {
          spent = 0
        })
      }
      if (spent >= nowMs || waiting.length > 0) {
        waiting.push(work)
        running ??= rest()
        return
      }
      const start = performance.now()
      work()
      spent += performance.now() - start
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

/** Max logged changes per definition, so that a server whose definitions change constantly does not fill the log. */
const maxLoggedChanges = 5
const maxNotices = 50_000

export type Notices = ReturnType<typeof createNotices>

/** Logs changes and findings in definitions, each event once per run. */
export function createNotices(log: Log, mode: PinsMode) {
  const isNew = firstTimes(maxNotices)
  const counts = new Map<string, number>()
  const once = (...key: readonly string[]): boolean => isNew(key.join('\n'))
  const effect = mode === 'quarantine' ? 'it is quarantined until it is approved' : 'it stays usable'

  return {
    changed(server: string, pin: Pin, snapshot: DefinitionSnapshot): void {
      const label = pinLabel(server, pin.kind, pin.name)
      if (!once('changed', label, snapshot.hash)) return
      const count = (counts.get(label) ?? 0) + 1
      counts.set(label, count)
      if (count > maxLoggedChanges) return
      const facts = {
        server,
        definition: visible(label),
        diff: summarizeChanges(latestApproval(pin)?.definition, snapshot.definition),
      }
      const more = count === maxLoggedChanges ? '. Further changes to it are not logged' : ''
      log.warn(
        facts,
        `definition differs from the approved one: ${effect}; run \`toolway pins show ${visible(label)}\` for details${more}`,
      )
    },
    unapproved(server: string): void {
      if (!once('unapproved', server)) return
      log.warn(
        { server },
        `a server's pins were lost; approve its definitions with \`toolway pins approve ${visible(server)}.*\``,
      )
    },
    isNew(server: string, label: string): void {
      if (!once('new', label)) return
      const facts = { server, definition: visible(label) }
      if (mode === 'quarantine') log.warn(facts, `new definition: ${effect}; see \`toolway pins show\``)
      else log.info(facts, 'trusted a new definition on first use')
    },
    found(server: string, label: string, hash: string, findings: readonly ScanFinding[]): void {
      if (!findings.some(isFlag) || !once('found', label, hash)) return
      const shown = findings.slice(0, 5).map(findingText)
      log.warn(
        { server, definition: visible(label), findings: shown },
        'definition contains hidden text or instructions to the model; review it before you trust it',
      )
    },
    full(server: string): void {
      if (!once('full', server)) return
      const message = `a server has offered more names than can be pinned; ${mode === 'quarantine' ? 'the rest are quarantined' : 'the rest are not checked for changes'}`
      log.warn({ server }, message)
    },
    moved(server: string, from: string, to: string): void {
      log.warn({ server, from: visible(from), to: visible(to) }, 'server has a new origin; its pins still apply')
    },
  }
}
