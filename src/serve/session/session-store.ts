import { randomBytes } from 'node:crypto'
import type { Caller } from '../../core/call.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { AuthIdentity } from '../auth/identity.ts'
import type { ServeContext } from '../context.ts'
import { EventStore } from './event-store.ts'
import { SessionStreams } from './resumable-streams.ts'
import { Session, type SessionClient, type SessionOptions, serializeSession } from './session.ts'

type ActingIdentity = AuthIdentity & Pick<Caller, 'agent' | 'asked' | 'exposure'>

const maxSessionIdleMs = fixedLimits.sessionIdleMs.value
const sweepMs = 60_000
const touchIntervalMs = 100
/** Interval at which session records are saved again, because saved records expire. */
const saveIntervalMs = 600_000

/** The first revision whose clients accept an event without a message. Revisions are dates and compare as text. */
const primedSince = '2025-11-25'

export class HttpSession extends Session {
  readonly id: string
  readonly streams: SessionStreams
  /** When the session was last used, and last saved for other replicas, on the monotonic clock. */
  lastUsed: number
  keptAt: number

  constructor(id: string, streams: SessionStreams, options: SessionOptions, now: number) {
    super(options, (message, onCalls) => streams.tell(message, onCalls))
    this.id = id
    this.streams = streams
    this.lastUsed = now
    this.keptAt = now
  }

  get isBusy(): boolean {
    return this.streams.listening || this.requests.size > 0
  }

  close(): void {
    this[Symbol.dispose]()
    this.streams[Symbol.dispose]()
  }
}

type SessionContext = Omit<ServeContext, 'info'>

export class SessionStore implements Disposable {
  readonly #context: SessionContext
  readonly #events: EventStore
  /** Sessions by id, the least recently used first, because `touch` moves a session to the end. */
  readonly #sessions = new Map<string, HttpSession>()
  readonly #returned: Disposable | undefined
  #timer: Disposable

  constructor(context: SessionContext) {
    this.#context = context
    this.#events = new EventStore(undefined, context.budgets.stored_bytes)
    this.#returned = context.membership?.onReturn?.(() => {
      for (const session of [...this.#sessions.values()]) this.keep(session)
    })
    this.#timer = context.clock.after(sweepMs, this.#sweep)
  }

  get count(): number {
    return this.#sessions.size
  }

  /** Opens a session. `known` is the id of a session to take over. Throws OVERLOADED if there is no room. */
  open(identity: ActingIdentity, client: SessionClient, address: string | undefined, known?: string): HttpSession {
    const { clock } = this.#context
    const { principal } = identity
    const id = known ?? this.#newId()
    this.#makeRoom(principal)
    const { capabilities, revision } = client
    const caller = { ...identity, session: id, capabilities, address }
    // Number streams from the current time, so that they cannot collide with streams from the previous replica.
    const first = known === undefined ? undefined : clock.now()
    const primes = revision >= primedSince
    const streams = new SessionStreams({ events: this.#events.open(principal), primes, clock, first })
    const session = new HttpSession(id, streams, { ...this.#context, caller, client }, clock.monotonic())
    this.#put(session)
    this.keep(session)
    return session
  }

  /** Whether this replica holds the session, no matter which principal owns it. */
  holds(id: string): boolean {
    return this.#sessions.has(id)
  }

  /** Returns the session only to the principal that owns it. */
  find(id: string, principal: string): HttpSession | undefined {
    const session = this.#sessions.get(id)
    if (session === undefined || session.caller.principal !== principal) return undefined
    this.touch(session)
    return session
  }

  /** Restarts a session's idle timeout. */
  touch(session: HttpSession): void {
    const now = this.#context.clock.monotonic()
    // Do not reorder a session that was used a moment ago.
    if (now - session.lastUsed < touchIntervalMs || !this.#take(session)) return
    session.lastUsed = now
    this.#put(session)
    if (now - session.keptAt > saveIntervalMs) this.keep(session)
  }

  keep(session: HttpSession): void {
    const { membership, clock } = this.#context
    session.keptAt = clock.monotonic()
    void membership?.keep(session.id, serializeSession(session)).then((ours) => ours || this.#letGo(session))
  }

  /** Ends a session: cancels its calls, closes its streams and discards its events. */
  end(session: HttpSession): void {
    if (!this.#take(session)) return
    this.#context.membership?.forget(session.id)
    session.close()
  }

  /** Sends the notifications to every session, or to one, on one stream each. */
  tell(messages: ReadonlySet<Buffer>, only?: string): void {
    for (const { caller, streams } of this.#sessions.values()) {
      if (only !== undefined && caller.session !== only) continue
      for (const message of messages) streams.tell(message)
    }
  }

  closeStreams(): void {
    for (const { streams } of this.#sessions.values()) streams.closeListening()
  }

  /** Drops a session that another replica took over while this one was unreachable, unless requests are in flight. */
  #letGo(session: HttpSession): void {
    if (session.requests.size > 0 || !this.#take(session)) return
    this.#context.log.info({ principal: session.caller.principal }, 'another replica has taken over a session')
    session.close()
  }

  #newId(): string {
    const id = randomBytes(16).toString('base64url')
    const { membership } = this.#context
    return membership === undefined ? id : `${membership.self}.${id}`
  }

  #put(session: HttpSession): void {
    this.#sessions.set(session.id, session)
    this.#context.budgets.sessions.add(session.caller.principal, 1)
  }

  #take(session: HttpSession): boolean {
    if (!this.#sessions.delete(session.id)) return false
    this.#context.budgets.sessions.give(session.caller.principal)
    return true
  }

  /** Ends an idle session if there is no room for another one. Throws OVERLOADED if all are in use. */
  #makeRoom(newcomer: string): void {
    const { sessions: budget } = this.#context.budgets
    if (this.#sessions.size < budget.limit && budget.usedBy(newcomer) < budget.perCaller) return
    const idle = this.#idleFor(newcomer)
    if (idle) {
      budget.shed()
      this.end(idle)
    }
    budget.check(newcomer)
  }

  /**
   * The idle session to end for a new one: that of the principals that hold the most sessions which was not used for the
   * longest time. A principal that is one of them, or at its bound, evicts only its own.
   */
  #idleFor(newcomer: string): HttpSession | undefined {
    const { sessions: budget } = this.#context.budgets
    const { largest } = budget.use()
    const own = budget.usedBy(newcomer)
    const isOwn = own > 0 && (own === largest || own >= budget.perCaller)
    const isEvictable = ({ caller: { principal } }: HttpSession) =>
      isOwn ? principal === newcomer : budget.usedBy(principal) === largest
    return [...this.#sessions.values()].find((session) => !session.isBusy && isEvictable(session))
  }

  readonly #sweep = (): void => {
    const oldest = this.#context.clock.monotonic() - maxSessionIdleMs
    for (const session of this.#sessions.values()) {
      if (session.lastUsed > oldest) break
      if (!session.isBusy) this.end(session)
    }
    this.#timer = this.#context.clock.after(sweepMs, this.#sweep)
  };

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]()
    this.#returned?.[Symbol.dispose]()
    // Close the sessions without ending them, because another replica may take them over.
    for (const session of this.#sessions.values()) session.close()
    this.#sessions.clear()
  }
}
