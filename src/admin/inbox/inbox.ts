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
export interface InboxEntry extends Omit<InboxItem, 'since'> {
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

export interface Inbox extends Disposable {
  /** Adds a source until the returned object is disposed of. */
  add(source: InboxSource): Disposable
  view(): InboxView
  /** Hides an item until its revision changes. */
  dismiss(id: string, by: string): Promise<void>
  /** Calls the listener when the items have changed, with those that are new since the last time. */
  onChange(listener: (view: InboxView, added: readonly InboxItem[]) => void): Disposable
}

export interface InboxOptions {
  readonly dismissals: Dismissals
  redact(text: string): string
  readonly clock: Clock
  readonly log: Log
}

interface FirstSeen {
  /** When this process first saw the item. */
  readonly at: number
  /** The earliest time at which the item can have begun in this process. */
  readonly begins: number
}

const pollMs = 1_000
/** Kinds that come from the state folder: they end in all processes at once. */
const sharedKinds: ReadonlySet<InboxItem['kind']> = new Set(['definition', 'key'] as const)
/** How long other items stay dismissed. Processes do not know when an item of another process ends. */
const maxDismissedMs = 7 * 86_400_000
const maxItems = 200
/** The rest is reserved for other kinds: callers who make many calls must not hide what else happens. */
const maxApprovals = 100
const maxTitle = 200
const maxDetail = 1_000
const urgency: Readonly<Record<InboxItem['severity'], number>> = { critical: 0, warning: 1, info: 2 }

/** Items that end soon come first, then the most urgent, then the newest. */
function compareItems(a: InboxItem, b: InboxItem): number {
  const [endA = Number.MAX_VALUE, endB = Number.MAX_VALUE] = [a.until, b.until]
  return endA - endB || urgency[a.severity] - urgency[b.severity] || b.since - a.since || (a.id < b.id ? -1 : 1)
}

/** Leaves out items if there are too many. */
function boundItems(items: readonly InboxItem[]): InboxItem[] {
  const approvals = items.filter(({ kind }) => kind === 'approval').slice(0, maxApprovals)
  return [...approvals, ...items.filter(({ kind }) => kind !== 'approval')].slice(0, maxItems)
}

/**
 * Collects what needs a person (V7). Every process has its own inbox: it shows the servers, rejected requests and stores
 * of this process. Definitions, keys and dismissals are shared by all processes with the same state folder, approvals by
 * all workers and replicas.
 */
export function createInbox({ dismissals, redact, clock, log }: InboxOptions): Inbox {
  const sources = new Map<InboxSource, Disposable | undefined>()
  const listeners = new Set<(view: InboxView, added: readonly InboxItem[]) => void>()
  const firstSeen = new Map<string, FirstSeen>()
  /** The items at the last refresh, by id. */
  let known: ReadonlyMap<string, InboxEntry> = new Map()
  /** The dismissed revisions of each item in this process, by id. */
  const dismissedHere = new Map<string, Set<string>>()
  let refreshedAt = Number.NEGATIVE_INFINITY
  let latest: InboxView = { items: [], dismissed: 0, left: 0 }
  let text = ''
  let timer: Disposable | undefined
  let queued = false
  let failed = false

  const shown = (part: string, max: number) => shorten(visible(redact(part)), max)

  const entriesOf = (source: InboxSource): readonly InboxEntry[] => {
    try {
      return source.items()
    } catch (cause) {
      if (!failed) log.error({ err: cause }, 'a part of the inbox cannot be read')
      failed = true
      return []
    }
  }

  const itemOf = ({ revision: _, since, ...entry }: InboxEntry): InboxItem => ({
    ...entry,
    title: shown(entry.title, maxTitle),
    detail: shown(entry.detail, maxDetail),
    since: since ?? firstSeen.get(entry.id)?.at ?? clock.now(),
  })

  const isDismissed = ({ id, kind, revision }: Pick<InboxEntry, 'id' | 'kind' | 'revision'>): boolean => {
    const after = sharedKinds.has(kind) ? 0 : clock.now() - maxDismissedMs
    const begins = firstSeen.get(id)?.begins ?? clock.now()
    if (!dismissals.has({ id, revision, after, begins })) return false
    dismissedHere.set(id, (dismissedHere.get(id) ?? new Set()).add(revision))
    return true
  }

  /** An item that reappears is reported as new, even if it looks the same, unless another process still has it. */
  const endDismissals = (id: string, kind: InboxItem['kind']) => {
    if (sharedKinds.has(kind)) dismissals.forget(id)
    else for (const revision of dismissedHere.get(id) ?? []) dismissals.end(id, revision, clock.now())
    dismissedHere.delete(id)
  }

  const refresh = (): InboxView => {
    const entries = new Map([...sources.keys()].flatMap(entriesOf).map((entry) => [entry.id, entry]))
    for (const { id, since = Number.NEGATIVE_INFINITY } of entries.values()) {
      if (!firstSeen.has(id)) firstSeen.set(id, { at: clock.now(), begins: Math.max(since, refreshedAt) })
    }
    for (const id of firstSeen.keys()) if (!entries.has(id)) firstSeen.delete(id)
    for (const [id, { kind }] of known) if (!entries.has(id)) endDismissals(id, kind)
    refreshedAt = clock.now()
    const open = [...entries.values()].filter(({ until, ...entry }) => until !== undefined || !isDismissed(entry))
    const items = open.map(itemOf).sort(compareItems)
    const bounded = boundItems(items)
    const added = items.filter(({ id }) => known.get(id)?.revision !== entries.get(id)?.revision)
    known = entries
    latest = {
      items: bounded,
      dismissed: entries.size - open.length,
      left: items.length - bounded.length,
    }
    const now = JSON.stringify(latest)
    if (now === text) return latest
    text = now
    for (const listener of listeners) listener(latest, added.slice(0, maxItems))
    return latest
  }

  /** Refreshes soon. Several sources often report the same event. */
  const refreshSoon = () => {
    if (queued || listeners.size === 0) return
    queued = true
    queueMicrotask(() => {
      queued = false
      refresh()
    })
  }

  const poll = () => {
    timer = clock.after(pollMs, () => {
      poll()
      refresh()
    })
  }

  const stop = () => {
    timer?.[Symbol.dispose]()
    timer = undefined
  }

  return {
    add(source) {
      sources.set(source, source.onChange?.(refreshSoon))
      refreshSoon()
      return {
        [Symbol.dispose]() {
          sources.get(source)?.[Symbol.dispose]()
          sources.delete(source)
          refreshSoon()
        },
      }
    },
    view: refresh,
    async dismiss(id, by) {
      refresh()
      const revision = known.get(id)?.revision
      if (revision === undefined) throw invalidArguments(`The inbox has no item ${visible(id).slice(0, 200)}.`)
      if (latest.items.some((item) => item.id === id && item.until !== undefined))
        throw invalidArguments(`${visible(id).slice(0, 200)} cannot be dismissed: answer it, or wait until it ends.`)
      await dismissals.add({ id, revision, by, at: clock.now() })
      refresh()
    },
    onChange(listener) {
      // Items from before the first listener are not news to it.
      if (listeners.size === 0) refresh()
      const listening = listen(listeners, listener)
      if (!timer) poll()
      return {
        [Symbol.dispose]() {
          listening[Symbol.dispose]()
          if (listeners.size === 0) stop()
        },
      }
    },
    [Symbol.dispose]() {
      stop()
      listeners.clear()
      for (const subscription of sources.values()) subscription?.[Symbol.dispose]()
      sources.clear()
    },
  }
}

const dismissal = z.object({
  ...{ id: z.string(), revision: z.string(), by: z.string(), at: z.number() },
  /** When the item last ended in a process. It may go on in others. */
  endedAt: z.number().optional(),
})
const content = z.object({ version: z.literal(1), dismissed: z.array(dismissal) })
type Dismissal = Readonly<z.output<typeof dismissal>>

/** Which inbox items an operator has hidden, in a file that all processes with the same state folder share. */
export interface Dismissals {
  /**
   * Whether an item was dismissed, at `after` or later. Once the item has ended in some process, the dismissal applies
   * only to processes in which the item began earlier. While one of them still has the item, it applies to all.
   */
  has(item: Pick<Dismissal, 'id' | 'revision'> & { readonly after: number; readonly begins: number }): boolean
  add(dismissed: Dismissal): Promise<void>
  /** Notes that a dismissed item has ended in this process. */
  end(id: string, revision: string, at: number): void
  /** Drops the dismissals of an item that has ended in all processes. */
  forget(id: string): void
}

const keyOf = ({ id, revision }: Pick<Dismissal, 'id' | 'revision'>): string => JSON.stringify([id, revision])

/** Max dismissals kept; the oldest are dropped. */
const maxDismissed = 500
const maxBytes = 1_048_576

export function openDismissals(folder: string, log: Log): Dismissals {
  const path = join(folder, 'inbox.json')
  let dismissed = new Map<string, Dismissal>()
  let mark: string | undefined

  /** Reads the file if it has changed. A damaged file counts as empty: then everything is shown. */
  const look = () => {
    const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    const now = found && `${found.ino} ${found.size} ${found.mtimeNs}`
    if (now === mark) return
    mark = now
    dismissed = new Map()
    if (!found?.isFile() || found.size > maxBytes) return
    const parsed = content.safeParse(parseJson(readFileSync(path, 'utf8')))
    if (!parsed.success) log.warn({ path }, 'the list of dismissed inbox items is damaged; showing all items')
    dismissed = new Map((parsed.data?.dismissed ?? []).map((one) => [keyOf(one), one]))
  }

  const change = async (update: (all: Map<string, Dismissal>) => void): Promise<void> => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await using _lock = await lockFile(`${path}.lock`)
    look()
    update(dismissed)
    const kept = [...dismissed.values()].sort((a, b) => a.at - b.at).slice(-maxDismissed)
    await writeAtomic(path, `${JSON.stringify({ version: 1, dismissed: kept })}\n`)
  }

  /** Changes the list at once, and the file soon. */
  const changeSoon = (update: (all: Map<string, Dismissal>) => void) => {
    update(dismissed)
    change(update).catch((cause: unknown) =>
      log.warn({ path, err: cause }, 'could not save the list of dismissed inbox items'),
    )
  }

  return {
    has({ after, begins, ...item }) {
      look()
      const key = keyOf(item)
      const found = dismissed.get(key)
      if (!found || found.at < after) return false
      const { endedAt, ...going } = found
      if (endedAt === undefined) return true
      if (begins >= endedAt) return false
      changeSoon((all) => void (all.get(key)?.endedAt === endedAt && all.set(key, going)))
      return true
    },
    add: (one) => change((all) => void all.set(keyOf(one), one)),
    end(id, revision, at) {
      look()
      const key = keyOf({ id, revision })
      if (!dismissed.has(key)) return
      changeSoon((all) => {
        const found = all.get(key)
        if (found && found.at <= at) all.set(key, { ...found, endedAt: at })
      })
    },
    forget(id) {
      look()
      const keys = [...dismissed].filter(([, one]) => one.id === id).map(([key]) => key)
      if (keys.length > 0)
        changeSoon((all) => {
          for (const key of keys) all.delete(key)
        })
    },
  }
}
