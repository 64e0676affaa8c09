import { lstatSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { visible } from '../../catalog/scan/finding.ts'
import type { Clock } from '../../core/clock.ts'
import { invalidArguments } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { parseJson } from '../../json/parse-json.ts'
import { lockFile, writeAtomic } from '../../lib/files.ts'
import { listen } from '../../lib/listen.ts'
import { shorten } from '../../lib/message-text.ts'
import type { InboxItem, InboxView } from '../contract.ts'

/** An item as its source reports it. */
export interface InboxEntry extends Omit<InboxItem, 'since' | 'actions'> {
  readonly actions?: InboxItem['actions']
  /** When it began; by default, when the inbox first saw it. */
  readonly since?: number | undefined
  /** A dismissed item returns when this text changes. */
  readonly revision: string
}

/** Reports one kind of items. Sources without `onChange` are asked once a second while somebody is interested. */
export interface InboxSource {
  items(): readonly InboxEntry[]
  onChange?(listener: () => void): Disposable
}

const inboxPollMs = 1_000
/** Kinds that come from the state folder: they end in all processes at once. */
const sharedKinds: ReadonlySet<InboxItem['kind']> = new Set(['definition', 'key'] as const)
/** How long other items stay dismissed. Processes do not know when an item of another process ends. */
const maxDismissedMs = 7 * 86_400_000
const maxItems = 200
/** The rest is reserved for other kinds: callers who make many calls must not hide what else happens. */
const maxApprovals = 100
const maxTitleLength = 200
const maxDetailLength = 1_000
const urgency: Readonly<Record<InboxItem['severity'], number>> = { critical: 0, warning: 1, info: 2 }

/** Items that end soon come first, then the most urgent, then the newest. */
function compareItems(a: InboxItem, b: InboxItem): number {
  const [endA = Number.MAX_VALUE, endB = Number.MAX_VALUE] = [a.until, b.until]
  return endA - endB || urgency[a.severity] - urgency[b.severity] || b.since - a.since || (a.id < b.id ? -1 : 1)
}

function boundItems(items: readonly InboxItem[]): InboxItem[] {
  const approvals = items.filter(({ kind }) => kind === 'approval').slice(0, maxApprovals)
  return [...approvals, ...items.filter(({ kind }) => kind !== 'approval')].slice(0, maxItems)
}

/**
 * Collects what needs a person (V7). Every process has its own inbox: it shows the servers, rejected requests and stores
 * of this process. Definitions, keys and dismissals are shared by all processes with the same state folder, approvals by
 * all workers and replicas.
 */
export class Inbox implements Disposable {
  readonly resources = new DisposableStack()
  readonly #dismissals: Dismissals
  readonly #redact: (text: string) => string
  readonly #clock: Clock
  readonly #log: Log
  readonly #sources = new Map<InboxSource, Disposable | undefined>()
  readonly #listeners = new Set<(view: InboxView, added: readonly InboxItem[]) => void>()
  /** When this process first saw each item, and the earliest time at which it can have begun in this process. */
  readonly #firstSeen = new Map<string, { readonly at: number; readonly begins: number }>()
  /** The items at the last refresh, by id. */
  #known: ReadonlyMap<string, InboxEntry> = new Map()
  /** The dismissed revisions of each item in this process, by id. */
  readonly #dismissedHere = new Map<string, Set<string>>()
  #refreshedAt = Number.NEGATIVE_INFINITY
  #latest: InboxView = { items: [], dismissed: 0, left: 0 }
  #text = ''
  #timer: Disposable | undefined
  #queued = false
  #failed = false

  constructor(dismissals: Dismissals, redact: (text: string) => string, clock: Clock, log: Log) {
    this.#dismissals = dismissals
    this.#redact = redact
    this.#clock = clock
    this.#log = log
  }

  add(source: InboxSource): Disposable {
    this.#sources.set(source, source.onChange?.(this.#refreshSoon))
    this.#refreshSoon()
    return {
      [Symbol.dispose]: () => {
        this.#sources.get(source)?.[Symbol.dispose]()
        this.#sources.delete(source)
        this.#refreshSoon()
      },
    }
  }

  view(): InboxView {
    const entries = new Map([...this.#sources.keys()].flatMap(this.#entriesOf).map((entry) => [entry.id, entry]))
    const now = this.#clock.now()
    for (const { id, since = Number.NEGATIVE_INFINITY } of entries.values()) {
      if (!this.#firstSeen.has(id)) this.#firstSeen.set(id, { at: now, begins: Math.max(since, this.#refreshedAt) })
    }
    for (const id of this.#firstSeen.keys()) if (!entries.has(id)) this.#firstSeen.delete(id)
    for (const [id, { kind }] of this.#known) if (!entries.has(id)) this.#endDismissals(id, kind)
    this.#refreshedAt = now
    const open = [...entries.values()].filter(({ until, ...entry }) => until !== undefined || !this.#isDismissed(entry))
    const items = open.map((entry) => this.#itemOf(entry)).sort(compareItems)
    const added = items.filter(({ id }) => this.#known.get(id)?.revision !== entries.get(id)?.revision)
    this.#known = entries
    const bounded = boundItems(items)
    this.#latest = { items: bounded, dismissed: entries.size - open.length, left: items.length - bounded.length }
    const text = JSON.stringify(this.#latest)
    if (text !== this.#text) {
      this.#text = text
      for (const listener of this.#listeners) listener(this.#latest, added.slice(0, maxItems))
    }
    return this.#latest
  }

  async dismiss(id: string, by: string): Promise<void> {
    this.view()
    const revision = this.#known.get(id)?.revision
    if (revision === undefined) throw invalidArguments(`The inbox has no item ${visible(id).slice(0, 200)}.`)
    if (this.#latest.items.some((item) => item.id === id && item.until !== undefined))
      throw invalidArguments(`${visible(id).slice(0, 200)} cannot be dismissed: answer it, or wait until it ends.`)
    await this.#dismissals.add({ id, revision, by, at: this.#clock.now() })
    this.view()
  }

  /** Calls the listener when the items have changed, with those that are new since the last time. */
  onChange(listener: (view: InboxView, added: readonly InboxItem[]) => void): Disposable {
    // Items from before the first listener are not news to it.
    if (this.#listeners.size === 0) this.view()
    const listening = listen(this.#listeners, listener)
    if (!this.#timer) this.#poll()
    return {
      [Symbol.dispose]: () => {
        listening[Symbol.dispose]()
        if (this.#listeners.size === 0) this.#stop()
      },
    }
  }

  [Symbol.dispose](): void {
    this.resources.dispose()
    this.#stop()
    this.#listeners.clear()
    for (const subscription of this.#sources.values()) subscription?.[Symbol.dispose]()
    this.#sources.clear()
  }

  #poll(): void {
    this.#timer = this.#clock.after(inboxPollMs, () => {
      this.#poll()
      this.view()
    })
  }

  #stop(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
  }

  /** Refreshes soon. Several sources often report the same event. */
  readonly #refreshSoon = (): void => {
    if (this.#queued || this.#listeners.size === 0) return
    this.#queued = true
    queueMicrotask(() => {
      this.#queued = false
      this.view()
    })
  }

  readonly #entriesOf = (source: InboxSource): readonly InboxEntry[] => {
    try {
      return source.items()
    } catch (cause) {
      if (!this.#failed) this.#log.error({ err: cause }, 'a part of the inbox cannot be read')
      this.#failed = true
      return []
    }
  }

  #itemOf({ revision: _, since, actions = [], ...entry }: InboxEntry): InboxItem {
    const shown = (part: string, max: number) => shorten(visible(this.#redact(part)), max)
    return {
      ...entry,
      title: shown(entry.title, maxTitleLength),
      detail: shown(entry.detail, maxDetailLength),
      actions,
      since: since ?? this.#firstSeen.get(entry.id)?.at ?? this.#clock.now(),
    }
  }

  #isDismissed({ id, kind, revision }: Pick<InboxEntry, 'id' | 'kind' | 'revision'>): boolean {
    const after = sharedKinds.has(kind) ? 0 : this.#clock.now() - maxDismissedMs
    const begins = this.#firstSeen.get(id)?.begins ?? this.#clock.now()
    if (!this.#dismissals.has({ id, revision, after, begins })) return false
    this.#dismissedHere.set(id, (this.#dismissedHere.get(id) ?? new Set()).add(revision))
    return true
  }

  /** An item that reappears is reported as new, even if it looks the same, unless another process still has it. */
  #endDismissals(id: string, kind: InboxItem['kind']): void {
    const ended = this.#dismissedHere.get(id) ?? []
    if (sharedKinds.has(kind)) this.#dismissals.forget(id)
    else for (const revision of ended) this.#dismissals.end({ id, revision }, this.#clock.now())
    this.#dismissedHere.delete(id)
  }
}

const dismissal = z.object({
  ...{ id: z.string(), revision: z.string(), by: z.string(), at: z.number() },
  /** When the item last ended in a process. It may go on in others. */
  endedAt: z.number().optional(),
})
const dismissalFile = z.object({ version: z.literal(1), dismissed: z.array(dismissal) })
type Dismissal = Readonly<z.output<typeof dismissal>>
type DismissedItem = Pick<Dismissal, 'id' | 'revision'>

const dismissalKey = ({ id, revision }: DismissedItem): string => JSON.stringify([id, revision])

const maxDismissed = 500

/** Which inbox items an operator has hidden, in a file that all processes with the same state folder share. */
export class Dismissals {
  readonly #folder: string
  readonly #path: string
  readonly #log: Log
  #dismissed = new Map<string, Dismissal>()
  #mark: string | undefined

  constructor(folder: string, log: Log) {
    this.#folder = folder
    this.#path = join(folder, 'inbox.json')
    this.#log = log
  }

  /**
   * Whether an item was dismissed, at `after` or later. Once the item has ended in some process, the dismissal applies
   * only to processes in which the item began earlier. While one of them still has the item, it applies to all.
   */
  has({ after, begins, ...item }: DismissedItem & { readonly after: number; readonly begins: number }): boolean {
    this.#look()
    const key = dismissalKey(item)
    const found = this.#dismissed.get(key)
    if (!found || found.at < after) return false
    const { endedAt, ...going } = found
    if (endedAt === undefined) return true
    if (begins >= endedAt) return false
    this.#changeSoon((all) => void (all.get(key)?.endedAt === endedAt && all.set(key, going)))
    return true
  }

  add(one: Dismissal): Promise<void> {
    return this.#change((all) => void all.set(dismissalKey(one), one))
  }

  /** Notes that a dismissed item has ended in this process. */
  end(item: DismissedItem, at: number): void {
    this.#look()
    const key = dismissalKey(item)
    if (!this.#dismissed.has(key)) return
    this.#changeSoon((all) => {
      const found = all.get(key)
      if (found && found.at <= at) all.set(key, { ...found, endedAt: at })
    })
  }

  /** Drops the dismissals of an item that has ended in all processes. */
  forget(id: string): void {
    this.#look()
    const keys = [...this.#dismissed].filter(([, one]) => one.id === id).map(([key]) => key)
    if (keys.length === 0) return
    this.#changeSoon((all) => {
      for (const key of keys) all.delete(key)
    })
  }

  /** Reads the file if it has changed. A damaged file counts as empty: then everything is shown. */
  #look(): void {
    const found = lstatSync(this.#path, { bigint: true, throwIfNoEntry: false })
    const mark = found && `${found.ino} ${found.size} ${found.mtimeNs}`
    if (mark === this.#mark) return
    this.#mark = mark
    const parsed = found?.isFile() ? dismissalFile.safeParse(parseJson(readFileSync(this.#path, 'utf8'))) : undefined
    if (parsed?.success === false)
      this.#log.warn({ path: this.#path }, 'the list of dismissed inbox items is damaged; showing all items')
    this.#dismissed = new Map((parsed?.data?.dismissed ?? []).map((one) => [dismissalKey(one), one]))
  }

  async #change(update: (all: Map<string, Dismissal>) => void): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await using _lock = await lockFile(`${this.#path}.lock`)
    this.#look()
    update(this.#dismissed)
    const kept = [...this.#dismissed.values()].sort((a, b) => a.at - b.at).slice(-maxDismissed)
    await writeAtomic(this.#path, `${JSON.stringify({ version: 1, dismissed: kept })}\n`)
  }

  /** Changes the list at once, and the file soon. */
  #changeSoon(update: (all: Map<string, Dismissal>) => void): void {
    update(this.#dismissed)
    this.#change(update).catch((cause: unknown) =>
      this.#log.warn({ path: this.#path, err: cause }, 'could not save the list of dismissed inbox items'),
    )
  }
}
