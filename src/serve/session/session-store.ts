import { randomBytes } from 'node:crypto'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { type Budgets, createBudgets } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Log } from '../../core/log.ts'
import type { AuthIdentity } from '../auth/identity.ts'
import { createEventStore } from './event-store.ts'
import { SessionStreams } from './resumable-streams.ts'
import { createSession, type Session, type SessionClient, serializeSession } from './session.ts'

type ActingIdentity = AuthIdentity & Pick<Caller, 'agent' | 'asked'>

export interface HttpSession extends Session {
  readonly id: string
  readonly streams: SessionStreams
  lastUsed: number
  /** When the session was last saved for other replicas, on the monotonic clock. */
  keptAt: number
}

export type SessionStore = ReturnType<typeof createSessionStore>

const maxIdleMs = fixedLimits.sessionIdleMs.value
const sweepMs = 60_000
const touchIntervalMs = 100
/** Interval at which session records are saved again, because saved records expire. */
const saveIntervalMs = 600_000

/** The first revision whose clients accept an event without a message. Revisions are dates and compare as text. */
const primedSince = '2025-11-25'

export function createSessionStore(options: {
  readonly access: Access
  readonly clock: Clock
  readonly budgets?: Pick<Budgets, 'sessions' | 'stored_bytes' | 'questions' | 'subscriptions'>
  readonly log: Log
  readonly membership?: Membership | undefined
}) {
  const { access, budgets = createBudgets(), clock, log, membership } = options
  const budget = budgets.sessions
  // Sessions by id, the least recently used first, because `touch` moves a session to the end.
  const sessions = new Map<string, HttpSession>()
  /** Each principal's sessions, in the same order. */
  const held = new Map<string, Set<HttpSession>>()
  const events = createEventStore(undefined, budgets.stored_bytes)

  const isBusy = (session: HttpSession) => session.streams.listening || session.requests.size > 0

  const put = (session: HttpSession) => {
    const { principal } = session.caller
    sessions.set(session.id, session)
    budget.add(principal, 1)
    const own = held.get(principal)
    if (own) own.add(session)
    else held.set(principal, new Set([session]))
  }

  const take = (session: HttpSession): boolean => {
    const { principal } = session.caller
    const own = held.get(principal)
    own?.delete(session)
    if (own?.size === 0) held.delete(principal)
    if (!sessions.delete(session.id)) return false
    budget.give(principal)
    return true
  }

  const close = (session: HttpSession) => {
    session[Symbol.dispose]()
    session.streams[Symbol.dispose]()
  }

  /** Ends a session: cancels its calls, closes its streams and discards its events. */
  const end = (session: HttpSession) => {
    if (!take(session)) return
    membership?.forget(session.id)
    close(session)
  }

  /** Restarts a session's idle timeout. */
  const touch = (session: HttpSession) => {
    const now = clock.monotonic()
    // Do not reorder a session that was used a moment ago.
    if (now - session.lastUsed < touchIntervalMs || !take(session)) return
    session.lastUsed = now
    put(session)
    if (now - session.keptAt > saveIntervalMs) keep(session)
  }

  /** Saves the session's record for other replicas. */
  const keep = (session: HttpSession) => {
    session.keptAt = clock.monotonic()
    void membership?.keep(session.id, serializeSession(session)).then((ours) => ours || letGo(session))
  }

  /** Drops a session that another replica took over while this one was unreachable, unless requests are in flight. */
  const letGo = (session: HttpSession) => {
    if (session.requests.size > 0 || !take(session)) return
    log.info({ principal: session.caller.principal }, 'another replica has taken over a session')
    close(session)
  }
  const returned = membership?.onReturn?.(() => {
    for (const session of [...sessions.values()]) keep(session)
  })

  const newId = () => {
    const id = randomBytes(16).toString('base64url')
    return membership === undefined ? id : `${membership.self}.${id}`
  }

  /**
   * The session sets of the principals that hold the most sessions. If the newcomer is one of them, only the newcomer's
   * set is returned, so that a principal that opens too many sessions evicts only its own.
   */
  const holdersOfMost = (newcomer: string): readonly Set<HttpSession>[] => {
    let most = 0
    for (const { size } of held.values()) most = Math.max(most, size)
    const own = held.get(newcomer)
    return own?.size === most ? [own] : [...held.values()].filter(({ size }) => size === most)
  }

  const firstIdle = (holder: Set<HttpSession> | undefined): HttpSession | undefined => {
    for (const session of holder ?? []) if (!isBusy(session)) return session
    return undefined
  }

  /** The idle session to end for a new one: the principal's own at its bound, else that of one of the largest holders. */
  const idleOf = (newcomer: string): HttpSession | undefined => {
    if (budget.usedBy(newcomer) >= budget.perCaller) return firstIdle(held.get(newcomer))
    let longest: HttpSession | undefined
    for (const holder of holdersOfMost(newcomer)) {
      const idle = firstIdle(holder)
      if (idle && (longest === undefined || idle.lastUsed < longest.lastUsed)) longest = idle
    }
    return longest
  }

  /** Ends an idle session if there is no room for another one. Throws OVERLOADED if all are in use. */
  const makeRoom = (newcomer: string) => {
    if (sessions.size < budget.limit && budget.usedBy(newcomer) < budget.perCaller) return
    const idle = idleOf(newcomer)
    if (idle) {
      budget.shed()
      end(idle)
    }
    budget.check(newcomer)
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
    get count(): number {
      return sessions.size
    },
    /** Opens a session. `known` is the id of a session to take over. Throws OVERLOADED if there is no room. */
    open(identity: ActingIdentity, client: SessionClient, address: string | undefined, known?: string): HttpSession {
      const id = known ?? newId()
      makeRoom(identity.principal)
      const { capabilities, revision } = client
      const caller = { ...identity, session: id, capabilities, address }
      // Number streams from the current time, so that they cannot collide with streams from the previous replica.
      const first = known === undefined ? undefined : clock.now()
      const streams = new SessionStreams({
        events: events.open(identity.principal),
        primes: revision >= primedSince,
        clock,
        first,
      })
      const tell = (message: Buffer, onCalls?: boolean) => streams.tell(message, onCalls)
      // Extend the same object instead of copying it, because its parts refer to it.
      const base = createSession({ access, caller, client, budgets, log, tell })
      const session = Object.assign(base, { id, streams, lastUsed: clock.monotonic(), keptAt: clock.monotonic() })
      put(session)
      keep(session)
      return session
    },
    /** Whether this replica holds the session, no matter which principal owns it. */
    holds: (id: string) => sessions.has(id),
    keep,
    /** Returns the session only to the principal that owns it. */
    find(id: string, principal: string): HttpSession | undefined {
      const session = sessions.get(id)
      if (session === undefined || session.caller.principal !== principal) return undefined
      touch(session)
      return session
    },
    touch,
    end,
    /** Sends the notifications to every session, or to one, on one stream each. */
    tell(messages: ReadonlySet<Buffer>, only?: string): void {
      for (const { caller, streams } of sessions.values()) {
        if (only !== undefined && caller.session !== only) continue
        for (const message of messages) streams.tell(message)
      }
    },
    closeStreams(): void {
      for (const session of sessions.values()) session.streams.closeListening()
    },
    [Symbol.dispose](): void {
      timer[Symbol.dispose]()
      returned?.[Symbol.dispose]()
      // Close the sessions without ending them, because another replica may take them over.
      for (const session of sessions.values()) close(session)
      sessions.clear()
      held.clear()
    },
  }
}
