import type { ServerConfig } from '../config/schema.ts'
import type { Call, Caller } from '../core/call.ts'
import { type Capabilities, canBeAsked, profileOf } from '../core/capabilities.ts'
import type { Clock } from '../core/clock.ts'
import type { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Connect, Tenancy } from './connect.ts'
import type { OpenLine } from './introduction.ts'
import { createLine, type Line } from './line.ts'
import { wantLogs } from './log-level.ts'
import { createSpares } from './spares.ts'

/** All lines to one server, and who gets which (G3). */
export interface Lines extends AsyncDisposable {
  readonly connected: boolean
  /** Why no line could be opened, or the last one went down, until one opens again. */
  readonly failure: ToolwayError | undefined
  readonly lost: ToolwayError | undefined
  readonly latest: OpenLine | undefined
  use<T>(user: LineUser, work: (open: OpenLine) => Promise<T>): Promise<T>
  /** The line that this caller's calls go over; not for servers that get a fresh one for each call. */
  of(caller: Caller): Line
  /** A line for looking at the server as clients with these capabilities see it. */
  forListing(capabilities: Capabilities): Line
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
  opened(open: OpenLine, capabilities: Capabilities, line: Line): void
  closed(line: Line, error?: ToolwayError): void
  changed(): void
  readonly clock: Clock
  readonly log: Log
}

/** Lines that belong to callers: beyond this the longest unused one is closed. */
const maxOwned = 256
/** How many lines are kept for the calls of one client that go on beside one another; more are opened for one call. */
const maxBeside = 8

export function createLines(options: LinesOptions): Lines {
  const { server, config, clock, log } = options
  const stdio = config.transport === 'stdio'
  /** One stream for everything that the server says, whomever it is for. */
  const oneStream = config.transport !== 'http'
  const shared = new Map<string, Line>()
  const owned = new Map<string, Line>()
  const fleeting = new Set<Line>()
  /** Lines whose owners get whatever is logged on them. */
  const loud = new WeakSet<Line>()
  const spares = createSpares(config.session === 'shared' ? 0 : config.spares, (capabilities) =>
    create({ capabilities, owned: true }),
  )
  /** A server of the stateless era is told with each request whom it is for, so that one line serves all. */
  let stateless: Line | undefined
  /** Set when the server has spoken to one of several callers and nothing told which. */
  let unclear = false
  let open = 0
  let failure: ToolwayError | undefined
  let lost: ToolwayError | undefined
  let latest: OpenLine | undefined

  return {
    get connected() {
      return open > 0
    },
    get failure() {
      return failure
    },
    get lost() {
      return lost
    },
    get latest() {
      return latest
    },
    use,
    of({ capabilities, session, peer }) {
      const logs = wantsLogs(peer)
      if (stateless && !logs) return stateless
      return logs || needsOwn(capabilities) ? ownLine(session, 0, capabilities, logs) : sharedLine(capabilities)
    },
    forListing(capabilities) {
      if (stateless) return stateless
      return config.session === 'call' || needsOwn(capabilities) ? spares.peek(capabilities) : sharedLine(capabilities)
    },
    inform(session, method) {
      for (const line of linesOf(session)) line.current?.connection.notify(method).catch(() => {})
    },
    left(session) {
      for (const [key, line] of owned) if (belongsTo(key, session)) void drop(key, line)
    },
    async [Symbol.asyncDispose]() {
      const all = [...shared.values(), ...owned.values(), ...fleeting, ...spares.all]
      await Promise.all(all.map((line) => line[Symbol.asyncDispose]()))
    },
  }

  async function use<T>({ caller, peer, signal }: LineUser, work: (open: OpenLine) => Promise<T>): Promise<T> {
    const prepared = async (open: OpenLine) => {
      open.connection.host = caller.peer ?? peer
      if (peer.logLevel) await wantLogs(open, peer.logLevel, signal)
      return work(open)
    }
    const line = config.session === 'call' ? undefined : lineOf(caller, peer)
    return line ? line.use(prepared, signal) : useOnce(caller, prepared, signal)
  }

  async function useOnce<T>(caller: Caller, work: (open: OpenLine) => Promise<T>, signal: AbortSignal): Promise<T> {
    const line = spares.take(caller.capabilities)
    try {
      return await line.use(work, signal)
    } finally {
      if (line !== stateless) end(line)
    }
  }

  /** Undefined for a call that needs a line of its own where all that are kept for its client are in use. */
  function lineOf(caller: Caller, peer: Call['peer']): Line | undefined {
    const { capabilities, session } = caller
    const logs = wantsLogs(peer)
    if (stateless && !logs) return stateless
    if (!logs && !needsOwn(capabilities)) return sharedLine(capabilities)
    // A client that answers in rounds must get each question as the answer to the call that caused it; and who comes
    // without a session may be several clients of one kind.
    const beside = peer.rounds && (oneStream || unclear) ? freeOf(session) : 0
    return beside === undefined ? undefined : ownLine(session, beside, capabilities, logs)
  }

  /** Whether this caller is sent log messages that nothing but its own line could tell from those of others. */
  function wantsLogs(peer: Call['peer'] | undefined): boolean {
    return oneStream && peer?.logLevel !== undefined && options.mayLog()
  }

  /** Where the wire does not tell whom the server speaks to, those it may speak to get lines of their own. */
  function needsOwn(capabilities: Capabilities): boolean {
    return config.session === 'caller' || unclear || (oneStream && canBeAsked(capabilities))
  }

  function sharedLine(capabilities: Capabilities): Line {
    const profile = profileOf(capabilities)
    const line = shared.get(profile) ?? create({ capabilities, owned: false })
    shared.set(profile, line)
    return line
  }

  function ownLine(session: string, beside: number, capabilities: Capabilities, logs: boolean): Line {
    const line = ownedLine(ownKey(session, beside), capabilities)
    if (logs) loud.add(line)
    return line
  }

  function ownedLine(key: string, capabilities: Capabilities): Line {
    const line = owned.get(key) ?? spares.take(capabilities)
    // Put at the end again: the first one is the longest unused.
    owned.delete(key)
    owned.set(key, line)
    if (owned.size > maxOwned) {
      for (const [old, candidate] of owned) if (!candidate.busy) return drop(old, candidate) && line
    }
    return line
  }

  function freeOf(session: string): number | undefined {
    for (let beside = 0; beside < maxBeside; beside++) if (!owned.get(ownKey(session, beside))?.inUse) return beside
    return undefined
  }

  function linesOf(session: string): Line[] {
    return [...owned].filter(([key]) => belongsTo(key, session)).map(([, line]) => line)
  }

  function drop(key: string, line: Line): true {
    owned.delete(key)
    end(line)
    return true
  }

  /** Ending takes a while, and a disposal of everything must wait for it. */
  function end(line: Line): void {
    fleeting.add(line)
    line[Symbol.asyncDispose]().then(() => fleeting.delete(line))
  }

  function create(tenancy: Tenancy): Line {
    const line: Line = createLine({
      server,
      connect: (signal) => options.connect(tenancy, signal),
      idleMs: stdio && config.idle > 0 ? config.idle : undefined,
      opened(opened) {
        open++
        failure = undefined
        lost = undefined
        latest = opened
        opened.connection.onUnclear = keepApart
        if (opened.introduction.era === 'modern' && config.session === 'shared' && !stateless && !loud.has(line)) {
          adopt(line)
          opened.connection.owned = false
        }
        options.opened(opened, tenancy.capabilities, line)
      },
      closed(error) {
        open--
        if (error) lost = error
        options.closed(line, error)
      },
      failed(error) {
        failure = error
        options.changed()
      },
      clock,
      log,
    })
    return line
  }

  /** From now on everybody's: it must not go with the caller or the spares it was opened for. */
  function adopt(line: Line): void {
    stateless = line
    shared.set('stateless', line)
    spares.forget(line)
    for (const [key, candidate] of owned) if (candidate === line) owned.delete(key)
  }

  function keepApart(): void {
    if (unclear) return
    unclear = true
    log.warn({ server }, 'the server spoke to one of several callers without telling which; each gets its own line now')
  }
}

const ownKey = (session: string, beside: number): string => `${beside} ${session}`
const belongsTo = (key: string, session: string): boolean => key.slice(key.indexOf(' ') + 1) === session
