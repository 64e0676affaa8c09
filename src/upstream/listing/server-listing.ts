import { createHash } from 'node:crypto'
import { type Capabilities, profileOf } from '../../core/capabilities.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import type { DescriptorStore, Descriptors } from '../../core/descriptors.ts'
import type { Entry } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/backoff.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { fetchLists, type ServerLists } from './fetch-lists.ts'

/** A server as clients of one kind see it: servers offer more to clients that can be asked for more. */
export interface ServerListing extends Disposable {
  readonly descriptors: Descriptors | undefined
  readonly entries: readonly Entry[]
  /** Whether the server has been fetched in this run. */
  readonly fetched: boolean
  /** Why it could not be listed, or which of its lists it could not give. */
  readonly failure: ToolwayError | undefined
  readonly missing: readonly string[]
  /** Recalls what was known before this run. */
  recall(): Promise<void>
  /** Whether something is known; old knowledge is checked behind the answer, once a run. */
  known(): boolean
  /** Asks the server; never rejects. */
  refresh(): Promise<void>
  /**
   * A new connection through which it can be seen is open. Settles when all lists were read again: another program, or
   * another version of it, may answer there. Rejects where they could not be read.
   */
  opened(open: InitializedConnection): Promise<void>
  /** The server says that something has changed. */
  changed(open: InitializedConnection): void
}

export interface ServerListingOptions {
  readonly server: string
  readonly capabilities: Capabilities
  readonly fingerprint: string
  readonly refreshMs: number
  readonly store: DescriptorStore
  /** The line to ask the server through. */
  connection(): ManagedConnection
  /** Any line through which it can be seen now; none is opened for that. */
  current(): InitializedConnection | undefined
  /** Whether the server could not be reached. */
  down(): boolean
  entriesOf(descriptors: Descriptors): readonly Entry[]
  /** What is known, or how well, is not what it was. */
  news(): void
  readonly clock: Clock
  readonly log: Log
}

const listWithinMs = 30_000
/** How often it is looked whether somebody has signed in. */
const signInMs = 5_000
const never = new AbortController().signal

export function createServerListing(options: ServerListingOptions): ServerListing {
  const { server, capabilities, fingerprint, refreshMs, store, clock, log } = options
  const record = recordName(server, capabilities)
  let descriptors: Descriptors | undefined
  let entries: readonly Entry[] = []
  let fetched = false
  /** When it was listed in this run, by the monotonic clock. */
  let listedAt = Number.NEGATIVE_INFINITY
  let failure: ToolwayError | undefined
  let missing: readonly string[] = []
  let listing: Promise<void> | undefined
  let following: Promise<void> | undefined
  const throttle = createRefreshThrottle(clock)
  /** Something has changed since it was asked last, and the time that it is asked again. */
  let isBehind = false
  let again: Disposable | undefined
  let timer: Disposable | undefined

  return {
    get descriptors() {
      return descriptors
    },
    get entries() {
      return entries
    },
    get fetched() {
      return fetched
    },
    get failure() {
      return failure
    },
    get missing() {
      return missing
    },
    async recall() {
      const remembered = await store.load(record, fingerprint)
      if (remembered && !descriptors) learn(remembered)
    },
    known() {
      if (!descriptors) return false
      if (!fetched && !options.down() && isOld()) void refresh()
      return true
    },
    refresh,
    opened(open) {
      if (!listing) return list(open)
      // The listing under way began before this connection. All who come meanwhile share the next one.
      following ??= listing
        .catch(() => {})
        .then(() => {
          following = undefined
          return list(open)
        })
      return following
    },
    changed(open) {
      isBehind = true
      // The listing under way may have missed what is new: the next one follows it.
      if (!listing && !again) catchUp(open)
    },
    [Symbol.dispose]() {
      timer?.[Symbol.dispose]()
      again?.[Symbol.dispose]()
    },
  }

  function isOld(): boolean {
    if (descriptors === undefined) return true
    // What an earlier run has stored has only the wall clock's time.
    const ageMs = fetched ? clock.monotonic() - listedAt : clock.now() - descriptors.fetchedAt
    return refreshMs > 0 && ageMs > refreshMs
  }

  async function refresh(): Promise<void> {
    try {
      await options.connection().use((open) => list(open), never)
    } catch (error) {
      log.debug({ server, err: error }, 'could not refresh what a server offers')
    }
  }

  /** One listing at a time. */
  function list(open: InitializedConnection, done?: () => void): Promise<void> {
    listing ??= listOnce(open).finally(() => {
      listing = undefined
      done?.()
      if (isBehind && !again) catchUp(open)
    })
    return listing
  }

  /** At once, unless the server tells of changes again and again. */
  function catchUp(open: InitializedConnection): void {
    const ms = throttle.next()
    if (ms === 0) return void list(open, throttle.done).catch(() => {})
    again = clock.after(ms, () => {
      again = undefined
      // Where none is open, it is asked when one is.
      const current = options.current()
      if (current && isBehind) list(current, throttle.done).catch(() => {})
    })
  }

  async function listOnce(open: InitializedConnection): Promise<void> {
    using limit = deadline(clock, listWithinMs, tooSlow)
    isBehind = false
    try {
      const offer = await fetchLists(open, { server, capabilities, log, signal: limit.signal })
      const recovered = failure !== undefined || missing.join() !== offer.failed.join()
      missing = offer.failed
      failure = undefined
      const fresh = { ...open.handshake, ...kept(offer), fetchedAt: clock.now() }
      const news = !fetched || recovered || differs(fresh, descriptors)
      fetched = true
      listedAt = clock.monotonic()
      if (news) learn(fresh)
      else descriptors = fresh
      if (news) await store.save(record, fingerprint, fresh).catch(unsaved)
    } catch (thrown) {
      failure = ToolwayError.from(thrown)
      options.news()
      throw thrown
    } finally {
      schedule()
    }
  }

  /** While the server is up it is asked again from time to time; a sleeping one is not woken for that. */
  function schedule(): void {
    timer?.[Symbol.dispose]()
    if (refreshMs === 0) return
    const soon = failure?.code === 'AUTH_REQUIRED' ? Math.min(refreshMs, signInMs) : refreshMs
    timer = clock.after(soon, () => {
      const open = options.current()
      if (open) list(open).catch(() => {})
    })
  }

  /** A list that failed this time keeps what it said last time. */
  function kept({ failed, ...offer }: ServerLists): Omit<ServerLists, 'failed'> {
    const or = (method: string, key: 'tools' | 'resources' | 'templates' | 'prompts') =>
      failed.includes(method) ? (descriptors?.[key] ?? []) : offer[key]
    return {
      tools: or('tools/list', 'tools'),
      resources: or('resources/list', 'resources'),
      templates: or('resources/templates/list', 'templates'),
      prompts: or('prompts/list', 'prompts'),
      exactSchemas: failed.includes('tools/list') ? descriptors?.exactSchemas : offer.exactSchemas,
    }
  }

  function learn(fresh: Descriptors): void {
    descriptors = fresh
    entries = options.entriesOf(fresh)
    options.news()
  }

  function tooSlow(): ToolwayError {
    const sentence = `${server} did not list what it offers within ${listWithinMs / 1000} s, which is a fixed limit.`
    return new ToolwayError('TIMEOUT', sentence, { server })
  }

  function unsaved(error: unknown): void {
    log.warn({ server, err: error }, 'could not remember what a server offers; the next start will ask it again')
  }
}

/** Whether callers would see a difference. */
const differs = (a: Descriptors, b: Descriptors | undefined): boolean =>
  JSON.stringify({ ...a, fetchedAt: 0 }) !== JSON.stringify({ ...b, fetchedAt: 0 })

/** What is remembered for clients of the plainest kind goes under the server's own name. */
function recordName(server: string, capabilities: Capabilities): string {
  if (Object.keys(capabilities).length === 0) return server
  return `${server} ${createHash('sha256').update(profileOf(capabilities)).digest('hex').slice(0, 12)}`
}

/** How soon something may be done again that others can ask for as often as they like. */
interface RefreshThrottle {
  /** How long to wait with the next one: pauses are ever longer where one follows the other, until all is quiet. */
  next(): number
  /** It was done. */
  done(): void
}

/** So many may follow each other at once: changes come in twos and threes. */
const atOnce = 2
const firstPauseMs = 100
const maxPauseMs = 30_000
/** After so many pauses without any, all is quiet again. */
const quietPauses = 10

function createRefreshThrottle(clock: Clock): RefreshThrottle {
  let inARow = 0
  let doneAt = Number.NEGATIVE_INFINITY

  const pauseMs = (): number =>
    inARow <= atOnce ? 0 : backoffMs(inARow - atOnce - 1, { firstMs: firstPauseMs, maxMs: maxPauseMs })

  return {
    next() {
      const sinceMs = clock.monotonic() - doneAt
      const isQuiet = sinceMs > quietPauses * Math.max(pauseMs(), firstPauseMs)
      inARow = isQuiet ? 0 : inARow + 1
      return Math.max(0, pauseMs() - sinceMs)
    },
    done() {
      doneAt = clock.monotonic()
    },
  }
}
