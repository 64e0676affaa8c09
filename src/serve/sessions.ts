import { randomBytes } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Identity } from './authenticate.ts'
import { type Client, cancelAll, createSession, type Session } from './session.ts'
import type { EventStream } from './stream.ts'

/** A session whose client comes and goes with each request. */
export interface HttpSession extends Session {
  readonly id: string
  /** Open streams for what belongs to no request, the newest last. */
  readonly streams: Set<EventStream>
  /** What could not be told because no stream was open; each is kept once. */
  readonly missed: Set<Buffer>
  lastUsed: number
}

export interface Sessions extends Disposable {
  /** Opens a session that belongs to this identity's principal; throws OVERLOADED when all places are in use. */
  open(identity: Identity, client: Client, address: string | undefined): HttpSession
  /** To any other principal a session does not exist. */
  find(id: string, principal: string): HttpSession | undefined
  /** Counts as use: the idle time starts anew. */
  touch(session: HttpSession): void
  /** Adds a stream for messages that belong to no request. */
  attach(session: HttpSession, stream: EventStream): void
  detach(session: HttpSession, stream: EventStream): void
  /** Ends a session: its calls are cancelled, its streams closed. */
  end(session: HttpSession): void
  /** Tells every session, each on one stream. */
  tell(messages: ReadonlySet<Buffer>): void
  /** Closes all streams and leaves the rest as it is. */
  closeStreams(): void
}

const maxSessions = 10_000
const maxIdleMs = 3_600_000
const sweepMs = 60_000
/** A client needs one; a few more are those it has lost without our knowing. */
const maxStreams = 4

export function createSessions(clock: Clock, limit = maxSessions): Sessions {
  // The longest idle comes first: a session is put at the end again whenever it is used.
  const sessions = new Map<string, HttpSession>()

  const isBusy = (session: HttpSession) => session.streams.size > 0 || session.requests.size > 0

  const end = (session: HttpSession) => {
    sessions.delete(session.id)
    cancelAll(session)
    for (const stream of session.streams) stream.end()
  }

  const touch = (session: HttpSession) => {
    if (!sessions.delete(session.id)) return
    session.lastUsed = clock.now()
    sessions.set(session.id, session)
  }

  const makeRoom = () => {
    if (sessions.size < limit) return
    for (const session of sessions.values()) if (!isBusy(session)) return end(session)
    throw new ToolwayError('OVERLOADED', `All ${limit} sessions are in use: end one, or try again later.`)
  }

  const sweep = () => {
    const oldest = clock.now() - maxIdleMs
    for (const session of sessions.values()) {
      if (session.lastUsed > oldest) break
      if (!isBusy(session)) end(session)
    }
    timer = clock.after(sweepMs, sweep)
  }
  let timer = clock.after(sweepMs, sweep)

  const tellOne = (session: HttpSession, message: Buffer) => {
    for (const stream of [...session.streams].reverse()) if (stream.send(message)) return
    session.missed.add(message)
  }

  const closeStreams = () => {
    for (const session of sessions.values()) for (const stream of session.streams) stream.end()
  }

  return {
    open(identity, client, address) {
      makeRoom()
      const id = randomBytes(16).toString('base64url')
      const { capabilities } = client
      const caller = {
        agent: 'default',
        ...identity,
        session: id,
        capabilities,
        ...(address !== undefined && { address }),
      }
      const base = createSession(caller, client)
      const session = { ...base, id, streams: new Set<EventStream>(), missed: new Set<Buffer>(), lastUsed: clock.now() }
      sessions.set(id, session)
      return session
    },
    find(id, principal) {
      const session = sessions.get(id)
      if (session === undefined || session.caller.principal !== principal) return undefined
      touch(session)
      return session
    },
    touch,
    attach(session, stream) {
      const [oldest] = session.streams
      if (oldest !== undefined && session.streams.size === maxStreams) {
        session.streams.delete(oldest)
        oldest.end()
      }
      session.streams.add(stream)
      for (const message of session.missed) stream.send(message)
      session.missed.clear()
    },
    detach(session, stream) {
      session.streams.delete(stream)
      touch(session)
    },
    end,
    tell(messages) {
      for (const session of sessions.values()) for (const message of messages) tellOne(session, message)
    },
    closeStreams,
    [Symbol.dispose]() {
      timer[Symbol.dispose]()
      for (const session of sessions.values()) end(session)
    },
  }
}
