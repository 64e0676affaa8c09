import { randomBytes } from 'node:crypto'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { AuthIdentity } from '../auth/identity.ts'
import { createEventStore } from './event-store.ts'
import { SessionStreams } from './resumable-streams.ts'
import { createSession, type Session, type SessionClient, serializeSession } from './session.ts'

/** Somebody as one of their agents. */
export type ActingIdentity = AuthIdentity & Pick<Caller, 'agent' | 'asked'>

/** A session whose client comes and goes with each request. */
export interface HttpSession extends Session {
  readonly id: string
  readonly streams: SessionStreams
  lastUsed: number
  /** When other replicas were last told of it. */
  keptAt: number
}

export interface SessionStore extends Disposable {
  readonly count: number
  /**
   * Opens a session that belongs to this identity's principal, or one that is known from elsewhere; throws OVERLOADED
   * when all places are in use.
   */
  open(identity: ActingIdentity, client: SessionClient, address: string | undefined, known?: string): HttpSession
  /** Whether it is held here, whoever's it is. */
  holds(id: string): boolean
  /** Something has changed about it that whoever goes on with it must know. */
  keep(session: HttpSession): void
  /** To any other principal a session does not exist. */
  find(id: string, principal: string): HttpSession | undefined
  /** Counts as use: the idle time starts anew. */
  touch(session: HttpSession): void
  /** Ends a session: its calls are cancelled, its streams closed, what was kept for it is dropped. */
  end(session: HttpSession): void
  /** Tells every session, each on one stream. */
  tell(messages: ReadonlySet<Buffer>): void
  /** Closes all streams that clients listen on and leaves the rest as it is. */
  closeStreams(): void
}

interface SessionsOptions {
  readonly access: Access
  readonly clock: Clock
  readonly log: Log
  readonly limit?: number
  /** The others, where this is one of several replicas. */
  readonly membership?: Membership | undefined
}

const maxSessions = 10_000
const maxIdleMs = 3_600_000
const sweepMs = 60_000
const aMomentMs = 100
/** Others forget a session that they were not told of for long. */
const toldMs = 600_000

/** The first revision whose clients know an event without a message; dates compare as text. */
const primedSince = '2025-11-25'

export function createSessionStore(options: SessionsOptions): SessionStore {
  const { access, clock, log, limit = maxSessions, membership } = options
  // The longest idle comes first: a session is put at the end again whenever it is used.
  const sessions = new Map<string, HttpSession>()
  /** The same of each principal, in the same order. */
  const held = new Map<string, Set<HttpSession>>()
  const events = createEventStore()

  const isBusy = (session: HttpSession) => session.streams.listening || session.requests.size > 0

  const put = (session: HttpSession) => {
    const { principal } = session.caller
    sessions.set(session.id, session)
    const own = held.get(principal)
    if (own) own.add(session)
    else held.set(principal, new Set([session]))
  }

  const take = (session: HttpSession): boolean => {
    const { principal } = session.caller
    const own = held.get(principal)
    own?.delete(session)
    if (own?.size === 0) held.delete(principal)
    return sessions.delete(session.id)
  }

  const close = (session: HttpSession) => {
    session[Symbol.dispose]()
    session.streams[Symbol.dispose]()
  }

  const end = (session: HttpSession) => {
    if (!take(session)) return
    membership?.forget(session.id)
    close(session)
  }

  const touch = (session: HttpSession) => {
    const now = clock.monotonic()
    // Of those in use, which was used last makes no difference.
    if (now - session.lastUsed < aMomentMs || !take(session)) return
    session.lastUsed = now
    put(session)
    if (now - session.keptAt > toldMs) keep(session)
  }

  const keep = (session: HttpSession) => {
    session.keptAt = clock.monotonic()
    void membership?.keep(session.id, serializeSession(session)).then((ours) => ours || letGo(session))
  }

  /** Another one has gone on with it while we could not be found. What is under way here is finished first. */
  const letGo = (session: HttpSession) => {
    if (session.requests.size > 0 || !take(session)) return
    log.info({ principal: session.caller.principal }, 'another replica has gone on with a session of this one')
    close(session)
  }
  const returned = membership?.onReturn?.(() => {
    for (const session of [...sessions.values()]) keep(session)
  })

  const newId = () => {
    const id = randomBytes(16).toString('base64url')
    return membership === undefined ? id : `${membership.self}.${id}`
  }

  /** Whoever holds the most, and of several the newcomer alone: a flood must not throw out anybody but itself. */
  const holdersOfMost = (newcomer: string): readonly Set<HttpSession>[] => {
    let most = 0
    for (const { size } of held.values()) most = Math.max(most, size)
    const own = held.get(newcomer)
    return own?.size === most ? [own] : [...held.values()].filter(({ size }) => size === most)
  }

  const maxIdle = (holder: Set<HttpSession>): HttpSession | undefined => {
    for (const session of holder) if (!isBusy(session)) return session
    return undefined
  }

  /** Who has more than half of all must not keep others out by keeping it busy: calls and streams are had for nothing. */
  const oldestTooMany = (holder: Set<HttpSession>, newcomer: string): HttpSession | undefined => {
    const [oldest] = holder
    return holder.size > limit / 2 && oldest?.caller.principal !== newcomer ? oldest : undefined
  }

  const makeRoom = (newcomer: string) => {
    if (sessions.size < limit) return
    let longest: HttpSession | undefined
    for (const holder of holdersOfMost(newcomer)) {
      const idle = maxIdle(holder) ?? oldestTooMany(holder, newcomer)
      if (idle && (longest === undefined || idle.lastUsed < longest.lastUsed)) longest = idle
    }
    if (longest) return end(longest)
    throw new ToolwayError('OVERLOADED', `All ${limit} sessions are in use: end one, or try again later.`)
  }

  const sweep = () => {
    const oldest = clock.monotonic() - maxIdleMs
    for (const session of sessions.values()) {
      if (session.lastUsed > oldest) break
      if (!isBusy(session)) end(session)
    }
    timer = clock.after(sweepMs, sweep)
  }
  let timer = clock.after(sweepMs, sweep)

  return {
    get count() {
      return sessions.size
    },
    open(identity, client, address, known) {
      const id = known ?? newId()
      makeRoom(identity.principal)
      const { capabilities, revision } = client
      const caller = {
        ...identity,
        session: id,
        capabilities,
        ...(address !== undefined && { address }),
      }
      const streams = new SessionStreams({
        events: events.open(),
        primes: revision >= primedSince,
        clock,
        // Whoever went on with it before began earlier.
        ...(known !== undefined && { first: clock.now() }),
      })
      const tell = (message: Buffer) => streams.tell(message)
      // The session itself is one object with what HTTP adds to it: its parts hold on to it.
      const base = createSession({ access, caller, client, log, tell })
      const session = Object.assign(base, { id, streams, lastUsed: clock.monotonic(), keptAt: clock.monotonic() })
      put(session)
      keep(session)
      return session
    },
    holds: (id) => sessions.has(id),
    keep,
    find(id, principal) {
      const session = sessions.get(id)
      if (session === undefined || session.caller.principal !== principal) return undefined
      touch(session)
      return session
    },
    touch,
    end,
    tell(messages) {
      for (const session of sessions.values()) for (const message of messages) session.streams.tell(message)
    },
    closeStreams() {
      for (const session of sessions.values()) session.streams.closeListening()
    },
    [Symbol.dispose]() {
      timer[Symbol.dispose]()
      returned?.[Symbol.dispose]()
      // Not ended: another replica may go on with them.
      for (const session of sessions.values()) close(session)
      sessions.clear()
      held.clear()
    },
  }
}
