import type { ServerConfig } from '../../config/schema.ts'
import type { Call, Caller, Peer } from '../../core/call.ts'
import { type Capabilities, canBeAsked, profileOf } from '../../core/capabilities.ts'
import type { Clock } from '../../core/clock.ts'
import { waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Json } from '../../core/json.ts'
import type { Log } from '../../core/log.ts'
import { createTurns, type Habit } from '../requests/call-turns.ts'
import { type Connect, connectWithinMs, type Tenancy } from './connect.ts'
import { type OpenLine, wantLogs } from './handshake.ts'
import { createLine, type Line } from './managed-connection.ts'
import { createBackoff } from './reconnect.ts'
import { afterHandshake, applied, createRoots, rootsKey, untilApplied } from './roots.ts'
import { createSpares } from './warm-pool.ts'

/** All lines to one server, and who gets which (G3). */
export interface Lines extends AsyncDisposable {
  readonly connected: boolean
  /** Whether any line is being opened. */
  readonly opening: boolean
  /** Why no line could be opened, or the last one went down, until one opens again. */
  readonly failure: ToolwayError | undefined
  readonly lost: ToolwayError | undefined
  /** When a server that could not be reached is tried again, in milliseconds from now. */
  readonly pauseMs: number
  /** Every line there is, open or not. */
  readonly all: readonly Line[]
  readonly latest: OpenLine | undefined
  /** How often what was open has ended by itself, was given up, or was ended by `interrupt`. */
  readonly breaks: number
  /** Ends what is open on every line; they are opened anew when somebody needs them, whatever has failed before. */
  interrupt(error: ToolwayError): Promise<void>
  use<T>(user: LineUser, work: (open: OpenLine) => Promise<T>): Promise<T>
  /** The line that this caller's calls go over; not for servers that get a fresh one for each call. */
  of(caller: Caller): Line
  /** A line for looking at the server as clients with these capabilities see it. */
  forListing(capabilities: Capabilities): Line
  /** An open line through which clients with these capabilities are served, if there is one. */
  current(capabilities: Capabilities): OpenLine | undefined
  /** Tells the server something on the lines that are this caller's alone. */
  inform(session: string, method: string): void
  left(session: string): void
}

/** Whoever a line is used for. */
export type LineUser = Pick<Call, 'caller' | 'peer' | 'signal'>

export interface LinesOptions {
  readonly server: string
  readonly config: ServerConfig
  readonly connect: Connect
  /** Whether the server may send log messages. */
  mayLog(): boolean
  /** An attempt to open a line begins. */
  opening?(): void
  opened(open: OpenLine, capabilities: Capabilities, line: Line): void
  closed(line: Line, error?: ToolwayError): void
  /** A line could not be opened, or did not answer any more. */
  failed(): void
  readonly clock: Clock
  readonly log: Log
}

/** Connections that belong to callers: beyond this the longest unused one is closed. */
const maxOwned = { stdio: 256, http: 4_096, sse: 4_096 } as const
/** Lines for several kinds of clients: there are only so many honest ways to say what one can be asked for. */
const maxShared = 32

/** Who uses a connection that belongs to one caller. */
interface Owner {
  /** Where it is kept, for an owner without a session. */
  key: string | undefined
  /** The roots that an owner without a session uses it with. */
  roots: Json | undefined
  readonly rooted: PromiseWithResolvers<Json>
  /** Settles when a server has had the time to ask for roots. */
  greeting: Promise<void> | undefined
  /** Settles when a server that has asked for roots has applied them. */
  rooting: Promise<void> | undefined
  /** Its calls on this connection, also those that wait until it is open. */
  readonly users: Set<LineUser>
  /** The way to its client outside any call, where there is one. */
  peer: Peer | undefined
}

export function createLines(options: LinesOptions): Lines {
  const { server, config, clock, log } = options
  const stdio = config.transport === 'stdio'
  /** One stream for everything that the server says, whichever call it is about. */
  const isOneStream = () => (latest?.connection.transport.kind ?? config.transport) !== 'http'
  const backoff = createBackoff(clock, { restarts: stdio ? config.restarts : undefined })
  const shared = new Map<string, Line>()
  const profiles = new WeakMap<Line, string>()
  const owned = new Map<string, Line>()
  const fleeting = new Set<Line>()
  const owners = new WeakMap<Line, Owner>()
  /** What the server's tools do in mid-call, as far as that is known. */
  const habits = new Map<string, Habit>()
  const roots = createRoots()
  /** Lines whose owners get whatever is logged on them. */
  const loud = new WeakSet<Line>()
  /** Each principal has a credential of its own, so that nobody's line can be anybody else's. */
  const personal = !stdio && config.auth?.type === 'oauth' && config.auth.perPrincipal
  const spares = createSpares(config.session === 'shared' || personal ? 0 : config.spares, (capabilities) =>
    createOwned(capabilities),
  )
  /** A server of the stateless era is told with each request whom it is for, so that one line serves all. */
  let stateless: Line | undefined
  /** Set when the server has spoken to a caller outside the streams of its calls. */
  let speaksAside = false
  /** Set when the server has asked a caller without a session for its roots. */
  let wantsRoots = false
  let open = 0
  let breaks = 0
  let closed = false
  let lost: ToolwayError | undefined
  let latest: OpenLine | undefined

  return {
    get connected() {
      return open > 0
    },
    get opening() {
      return all().some((line) => line.opening)
    },
    get failure() {
      return backoff.failure
    },
    get lost() {
      return lost
    },
    get pauseMs() {
      return backoff.pauseMs
    },
    get all() {
      return all()
    },
    get latest() {
      return latest
    },
    get breaks() {
      return breaks
    },
    async interrupt(error) {
      if (open > 0) breaks++
      lost = undefined
      await Promise.all(all().map((line) => line.interrupt(error)))
      backoff.forgive()
    },
    use,
    of: (caller) => lineOf(caller, caller.peer),
    forListing(capabilities) {
      if (stateless) return stateless
      return config.session === 'call' || needsOwn(capabilities) ? spares.peek(capabilities) : sharedLine(capabilities)
    },
    inform(session, method) {
      for (const [key, line] of owned)
        if (belongsTo(key, session)) line.current?.connection.notify(method).catch(() => {})
    },
    left(session) {
      for (const [key, line] of owned) if (belongsTo(key, session)) drop(owned, key, line)
      for (const line of all()) line.sessions.delete(session)
    },
    current(capabilities) {
      const profile = profileOf(capabilities)
      const all = [...shared.values(), ...owned.values(), ...spares.all]
      const shows = (line: Line) => line.current?.principal === undefined && profiles.get(line) === profile
      return stateless?.current ?? all.find((line) => line.current && shows(line))?.current
    },
    async [Symbol.asyncDispose]() {
      closed = true
      await Promise.all(all().map((line) => line[Symbol.asyncDispose]()))
    },
  }

  function all(): Line[] {
    return [...new Set([...shared.values(), ...owned.values(), ...fleeting, ...spares.all])]
  }

  function use<T>(user: LineUser, work: (open: OpenLine) => Promise<T>): Promise<T> {
    if (config.session === 'call') return useOnce(user, work)
    if (needsRoots(user)) return useRooted(user, work)
    return useLine(lineOf(user.caller, user.peer), user, work)
  }

  async function useLine<T>(
    line: Line,
    user: LineUser,
    work: (open: OpenLine) => Promise<T>,
    rooted = false,
  ): Promise<T> {
    const { peer, signal } = user
    const owner = owners.get(line)
    const logged = (open: OpenLine) =>
      peer.logLevel ? wantLogs(open, peer.logLevel, signal).then(() => work(open)) : work(open)
    const settled = async (open: OpenLine, { greeting }: Owner) => {
      if (greeting) await waitFor(greeting, signal)
      if (!rooted && needsRoots(user)) return useRooted(user, work)
      if (owner?.rooting) await untilApplied(owner.rooting, clock, signal)
      return logged(open)
    }
    const prepared = (open: OpenLine) => {
      const { connection } = open
      if (connection.owned && (isOneStream() || speaksAside)) {
        connection.turns ??= createTurns(clock, habits, peer.rounds)
      }
      const settling = owner?.greeting || owner?.rooting || (!rooted && needsRoots(user))
      return owner && settling ? settled(open, owner) : logged(open)
    }
    owner?.users.add(user)
    try {
      return await line.use(prepared, signal)
    } finally {
      owner?.users.delete(user)
    }
  }

  /** Uses the connection that was given the same roots as this call has. */
  async function useRooted<T>(user: LineUser, work: (open: OpenLine) => Promise<T>): Promise<T> {
    const { caller, peer, signal } = user
    const told = await roots.of(peer, signal)
    const line = told ? rootedLine(caller, told) : lineOf(caller, peer)
    return useLine(line, user, work, true)
  }

  /** A caller without a session may be several programs with different roots. */
  function needsRoots({ caller, peer }: LineUser): boolean {
    return wantsRoots && !stateless && !caller.peer && peer.rounds && caller.capabilities.roots !== undefined
  }

  function rootedLine(caller: Caller, told: Json): Line {
    const key = `${ownKey(caller)} ${rootsKey(told)}`
    const known = owned.get(key)
    if (known) {
      keep(owned, key, known, maxOwned[config.transport])
      return known
    }
    const first = owned.get(ownKey(caller))
    const line = first && owners.get(first)?.roots === undefined ? first : newLine(caller)
    bind(line, key, told)
    return line
  }

  async function useOnce<T>(user: LineUser, work: (open: OpenLine) => Promise<T>): Promise<T> {
    const line = newLine(user.caller)
    fleeting.add(line)
    try {
      return await useLine(line, user, work)
    } finally {
      if (line !== stateless) end(line)
      else fleeting.delete(line)
    }
  }

  /** All calls of one caller go over one connection, so that it sees one state of the server (V3). */
  function lineOf(caller: Caller, peer: Peer | undefined): Line {
    const line = chosenFor(caller, peer)
    if (caller.peer) line.sessions.add(caller.session)
    return line
  }

  function chosenFor(caller: Caller, peer: Peer | undefined): Line {
    const { capabilities, session } = caller
    const own = owned.size > 0 ? (owned.get(ownKey(caller)) ?? lastRooted(caller)) : undefined
    const logs = wantsLogs(peer)
    if (own && owners.get(own)?.roots) return own
    if (own || (!stateless && needsOwn(capabilities))) return ownLine(caller, logs)
    // A session that has used the common connection stays there: what the server keeps for it is there, too.
    if (logs && !(stateless ?? shared.get(profileOf(capabilities)))?.sessions.has(session)) return ownLine(caller, logs)
    return stateless ?? sharedLine(capabilities)
  }

  /** For what does not say which roots it is about, such as a subscription. */
  function lastRooted(caller: Caller): Line | undefined {
    if (!wantsRoots || caller.capabilities.roots === undefined) return undefined
    const prefix = `${ownKey(caller)} `
    return [...owned].findLast(([key]) => key.startsWith(prefix))?.[1]
  }

  /** Whether this caller is sent log messages that nothing but its own connection can tell from those of others. */
  function wantsLogs(peer: Peer | undefined): boolean {
    if (peer?.logLevel === undefined || !options.mayLog()) return false
    return isOneStream() || latest?.introduction.era !== 'modern'
  }

  /** Only a connection of its own tells whom the server asks, whatever other callers do or have cancelled. */
  function needsOwn(capabilities: Capabilities): boolean {
    return config.session === 'caller' || personal || canBeAsked(capabilities)
  }

  function sharedLine(capabilities: Capabilities): Line {
    const profile = profileOf(capabilities)
    const line = shared.get(profile) ?? create({ capabilities, owned: false })
    keep(shared, profile, line, maxShared)
    return line
  }

  function ownLine(caller: Caller, logs: boolean): Line {
    const key = ownKey(caller)
    const line = owned.get(key) ?? newLine(caller)
    keep(owned, key, line, maxOwned[config.transport])
    if (logs) loud.add(line)
    const owner = owners.get(line)
    if (owner) Object.assign(owner, { peer: caller.peer, key: caller.peer ? undefined : key })
    return line
  }

  function newLine({ capabilities, principal }: Caller): Line {
    return personal ? createOwned(capabilities, principal) : spares.take(capabilities)
  }

  function createOwned(capabilities: Capabilities, principal?: string): Line {
    const rooted = Promise.withResolvers<Json>()
    const owner: Owner = {
      users: new Set(),
      peer: undefined,
      key: undefined,
      roots: undefined,
      rooted,
      greeting: undefined,
      rooting: undefined,
    }
    const line = create({
      capabilities,
      owned: true,
      principal,
      host: () => ({ calls: [...owner.users].map(({ peer }) => peer), session: owner.peer ? [owner.peer] : [] }),
      roots: ([first]) => (first && owner.key !== undefined ? tellingRoots(line, owner, first) : undefined),
      onRoots(told) {
        const rooting = told
          .then(() => applied(line.current?.connection, clock))
          .then(() => {
            if (owner.rooting === rooting) owner.rooting = undefined
          })
        owner.rooting = rooting
      },
    })
    owners.set(line, owner)
    return line
  }

  /** The roots that a connection without a session is used with: those of the call for which the server asks first. */
  function tellingRoots(line: Line, owner: Owner, first: Peer): Peer {
    wantsRoots = true
    return {
      ...first,
      async ask(_, __, signal) {
        if (owner.roots) return owner.roots
        const own = roots.of(first, signal).catch((error) => {
          if (signal.aborted) throw error
          // The call was cancelled: the roots of the next one are as good.
          return owner.rooted.promise
        })
        const told = await Promise.race([own, owner.rooted.promise])
        if (!told) throw new ToolwayError('INVALID_ARGUMENTS', "The caller's client does not tell its roots.")
        if (!owner.roots) bind(line, `${owner.key} ${rootsKey(told)}`, told)
        return told
      },
    }
  }

  /** From now on the connection is for calls with these roots. */
  function bind(line: Line, key: string, told: Json): void {
    const owner = owners.get(line)
    if (!owner) return
    if (owner.key !== undefined && owned.get(owner.key) === line) owned.delete(owner.key)
    owner.key = key
    owner.roots = told
    owner.rooted.resolve(told)
    keep(owned, key, line, maxOwned[config.transport])
  }

  /** Puts a line at the end: the first one is the longest unused, and makes room where there are too many. */
  function keep(lines: Map<string, Line>, key: string, line: Line, most: number): void {
    lines.delete(key)
    lines.set(key, line)
    if (lines.size <= most) return
    const unused = [...lines].filter(
      ([, candidate]) => candidate !== line && candidate !== stateless && !candidate.busy,
    )
    const first = unused.find(([, { sessions }]) => sessions.size === 0) ?? unused[0]
    if (first) drop(lines, ...first)
  }

  function drop(lines: Map<string, Line>, key: string, line: Line): void {
    lines.delete(key)
    end(line)
  }

  /** Ending takes a while, and a disposal of everything must wait for it. */
  function end(line: Line): void {
    fleeting.add(line)
    line[Symbol.asyncDispose]().then(() => fleeting.delete(line))
  }

  function create(tenancy: Tenancy): Line {
    if (closed) {
      const sentence = `Toolway is closing its lines to ${server}.`
      throw new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, unsent: true })
    }
    const line: Line = createLine({
      server,
      connect: (signal) => options.connect(tenancy, signal),
      backoff,
      connectWithinMs: config.startTimeout ?? connectWithinMs(config.transport),
      idleMs: stdio && config.idle > 0 ? config.idle : undefined,
      opening: () => options.opening?.(),
      opened(opened) {
        open++
        lost = undefined
        latest = opened
        opened.connection.onAside = () => {
          speaksAside = true
        }
        awaitRoots(line, opened, tenancy)
        const modern = opened.introduction.era === 'modern'
        if (modern && config.session === 'shared' && !personal && !stateless && !loud.has(line)) adopt(line)
        if (line === stateless && !modern) disown(line)
        if (line === stateless) opened.connection.owned = false
        options.opened(opened, tenancy.capabilities, line)
      },
      closed(error) {
        open--
        if (error) lost = error
        options.closed(line, error)
      },
      failed: options.failed,
      broke: () => breaks++,
      clock,
      log,
    })
    profiles.set(line, profileOf(tenancy.capabilities))
    return line
  }

  /** The first calls must not overtake the roots that a server asks for right after the handshake. */
  function awaitRoots(line: Line, open: OpenLine, { capabilities }: Tenancy): void {
    const owner = owners.get(line)
    if (!owner || capabilities.roots === undefined || open.introduction.era === 'modern') return
    // Over HTTP nothing tells when the server could have asked.
    if (open.connection.transport.kind === 'http') return
    owner.greeting = afterHandshake(open.connection, clock).then(() => {
      owner.greeting = undefined
    })
  }

  /** A server that has gone back to the era with sessions needs lines for those it is greeted for. */
  function disown(line: Line): void {
    stateless = undefined
    drop(shared, 'stateless', line)
  }

  /** From now on everybody's: it must not go with the caller or the spares it was opened for. */
  function adopt(line: Line): void {
    stateless = line
    shared.set('stateless', line)
    owners.delete(line)
    spares.forget(line)
    for (const [key, candidate] of owned) if (candidate === line) owned.delete(key)
  }
}

/** What one client can be asked for is declared when its connection is opened: each kind of client has its own. */
const ownKey = ({ session, capabilities }: Caller): string => `${session} ${profileOf(capabilities)}`
const belongsTo = (key: string, session: string): boolean => key.startsWith(`${session} `)
