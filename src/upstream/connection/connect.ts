import type { ServerConfig } from '../../config/schema.ts'
import type { Capabilities } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Budget } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { withoutHidden } from '../../lib/characters.ts'
import type { OrphanReaper } from '../../process/orphan-reaper.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { HttpTransport } from '../transports/http.ts'
import { createReadBudget } from '../transports/read-limit.ts'
import { SseTransport } from '../transports/sse.ts'
import { createRecentLines, type OutputLine, type RedactLine } from '../transports/stderr.ts'
import { StdioTransport } from '../transports/stdio.ts'
import type { Transport } from '../transports/transport.ts'
import { refusesStreamableHttp, StrayOutput } from '../transports/transport-errors.ts'
import {
  type ClientIdentity,
  type InitializedConnection,
  initialize,
  mayBeOtherEra,
  negotiate,
  openSession,
  refusesSession,
} from './handshake.ts'
import { RpcConnection, type RpcConnectionOptions } from './rpc-connection.ts'

export interface ConnectorOptions {
  readonly name: string
  readonly config: ServerConfig
  readonly identity: ClientIdentity
  readonly host?: ConnectorHost
  readonly clock: Clock
  readonly log: Log
}

/** What the gateway has for the connections of all its servers. */
interface ConnectorHost {
  readonly orphanReaper?: OrphanReaper
  /** Removes secrets from a process's output before it reaches error messages, the status or the log. */
  readonly redact?: RedactLine | undefined
  readonly oauth?: Pick<OAuth, 'authorize'> | undefined
  readonly tasks?: Budget | undefined
}

/** Describes who uses a connection: the client's capabilities, and whether the connection is for that client alone. */
export interface ConnectionScope extends Omit<RpcConnectionOptions, 'server' | 'tasks' | 'log'> {
  readonly capabilities: Capabilities
  /** The principal whose credential the connection uses, if each principal has its own. */
  readonly principal?: string | undefined
  /** Whether to open a session if the server offers one beside the stateless protocol. */
  readonly prefersSession?: boolean
}

export interface Connector {
  (scope: ConnectionScope, signal: AbortSignal): Promise<InitializedConnection>
  stderr?(): readonly OutputLine[]
}

/** How long connecting may take. The first start of a stdio server may download a package. */
export const connectWithinMs = (transport: ServerConfig['transport']): number =>
  transport === 'stdio' ? 120_000 : 30_000

/** How long to wait for a session that a server may not offer. */
const sessionWithinMs = 5_000
/** For how long a server that did not answer is not asked for another session. */
const noSessionMs = 300_000

/** How many characters of a server's error are searched for secrets, and shown. */
const maxErrorRead = 2_000
const maxErrorShown = 300

/** `session` prefers the protocol with sessions, `probe` the stateless one. */
type HandshakeMethod = 'probe' | 'initialize' | 'session'

/** Opens connections to one server. */
export function createConnector(options: ConnectorOptions): Connector {
  const opener = new ConnectionOpener(options)
  return Object.assign((scope: ConnectionScope, signal: AbortSignal) => opener.open(scope, signal), {
    stderr: () => opener.stderr(),
  })
}

/** Remembers which transport and handshake worked, and forgets them when that handshake fails. */
class ConnectionOpener {
  readonly #options: ConnectorOptions
  #method: HandshakeMethod
  #isKnown: boolean
  #transport: ServerConfig['transport']
  /** Until when new clients do not wait for a session, because the server did not answer when asked for one. */
  #silentUntil = 0
  readonly #stderr = createRecentLines()
  readonly #reading = createReadBudget()

  constructor(options: ConnectorOptions) {
    this.#options = options
    this.#method = firstMethod(options.config)
    this.#isKnown = options.config.transport === 'sse'
    this.#transport = options.config.transport
  }

  stderr(): readonly OutputLine[] {
    return this.#stderr.lines()
  }

  async open(scope: ConnectionScope, signal: AbortSignal): Promise<InitializedConnection> {
    try {
      return await this.#detect(scope, signal)
    } catch (error) {
      throw this.#described(error)
    }
  }

  /** Opens the transport and performs the handshake; closes the transport if that fails. */
  async #attempt(scope: ConnectionScope, method: HandshakeMethod, signal: AbortSignal): Promise<InitializedConnection> {
    const { name: server, identity, host, clock, log } = this.#options
    const { capabilities, principal } = scope
    const transport = this.#transportFor(scope)
    let connection: RpcConnection | undefined
    try {
      connection = await RpcConnection.open(transport, { ...scope, server, tasks: host?.tasks, log }, signal)
      const options = { server, identity, capabilities, clock, log, signal }
      const handshake = await handshakes[method](connection, options)
      return { connection, handshake, identity, principal }
    } catch (error) {
      await transport[Symbol.asyncDispose]()
      if (!(error instanceof ToolwayError)) throw error
      if (signal.aborted)
        throw new ToolwayError(error.code, error.message + (transport.explanation?.() ?? ''), error.details)
      // Some processes exit on an unknown request, so the caller retries with a plain `initialize`.
      const mayBeProbe = connection !== undefined && transport.kind === 'stdio' && method === 'probe'
      throw mayBeProbe && !(error.details.cause instanceof StrayOutput) ? new EndedByProbe() : error
    }
  }

  #transportFor({ principal, exceeded }: ConnectionScope): Transport {
    const { name, config, host = {}, clock, log } = this.#options
    const common = { name, exceeded, reading: this.#reading, clock, log }
    if (config.transport === 'stdio') {
      const { command, args, cwd, env, startTimeout } = config
      const { orphanReaper, redact } = host
      const wrote = this.#stderr.push
      return new StdioTransport({ ...common, command, args, cwd, env, startTimeout, orphanReaper, redact, wrote })
    }
    const { url, auth } = config
    const token = auth?.type === 'bearer' ? { authorization: `Bearer ${auth.token}` } : {}
    const authorize = host.oauth?.authorize(name, config, principal)
    const options = { ...common, url, headers: { ...token, ...config.headers }, authorize }
    return this.#transport === 'sse' ? new SseTransport(options) : new HttpTransport(options)
  }

  async #detect(scope: ConnectionScope, signal: AbortSignal): Promise<InitializedConnection> {
    try {
      return await this.#connect(scope, signal)
    } catch (error) {
      if (!this.#isKnown && !signal.aborted) return await this.#fallBack(error, scope, signal)
      // On the next attempt, detect the transport and the handshake again, because the server may have been replaced.
      const { config } = this.#options
      this.#method = firstMethod(config)
      this.#isKnown = config.transport === 'sse'
      this.#transport = config.transport
      throw error
    }
  }

  async #connect(scope: ConnectionScope, signal: AbortSignal): Promise<InitializedConnection> {
    const method = this.#method
    const isStdio = this.#options.config.transport === 'stdio'
    // A process always serves a session to its only client. An HTTP server may speak the other protocol without sessions.
    const asked = method === 'probe' && scope.prefersSession && isStdio ? 'session' : method
    const opened = await this.#attempt(scope, asked, signal).catch((error) => {
      // Some processes that know only the stateless protocol exit on `initialize`.
      if (asked !== 'session' || signal.aborted) throw error
      return this.#attempt(scope, method, signal)
    })
    if (opened.handshake.era === 'legacy' && asked !== 'session') this.#learnSessions()
    if (opened.handshake.era === 'legacy' || asked === 'session' || !scope.prefersSession) return opened
    return await this.#withSession(opened, scope, signal)
  }

  /** Tries `initialize`, or the older transport, if the error says that the server may know only that. */
  async #fallBack(error: unknown, scope: ConnectionScope, signal: AbortSignal): Promise<InitializedConnection> {
    const { name, config, log } = this.#options
    if (error instanceof EndedByProbe) {
      log.debug({ server: name }, 'the server exited on server/discover; retrying with initialize')
    } else if (this.#transport === 'http' && refusesStreamableHttp(error)) {
      log.info({ server: name }, 'the server rejected Streamable HTTP; trying HTTP+SSE')
      this.#transport = 'sse'
    } else throw this.#explained(error)
    // If this attempt fails as well, report the first error, because it is about the configured transport.
    const opened = await this.#attempt(scope, 'initialize', signal).catch((later) => {
      this.#transport = config.transport
      throw error instanceof EndedByProbe ? later : this.#explained(error)
    })
    this.#learnSessions()
    return opened
  }

  #learnSessions(): void {
    this.#method = 'initialize'
    this.#isKnown = true
  }

  /** Replaces a stateless connection with one that has a session, if the server offers that too. */
  async #withSession(
    stateless: InitializedConnection,
    scope: ConnectionScope,
    signal: AbortSignal,
  ): Promise<InitializedConnection> {
    const { name, clock, log } = this.#options
    const unanswered = new Error('no session within the time limit')
    if (clock.monotonic() < this.#silentUntil) return { ...stateless, mayOfferSession: true }
    using limit = deadline(clock, sessionWithinMs, () => unanswered, signal)
    let other: InitializedConnection
    try {
      other = await this.#attempt(scope, 'initialize', limit.signal)
    } catch (error) {
      if (signal.aborted) {
        await stateless.connection[Symbol.asyncDispose]()
        throw error
      }
      log.debug({ server: name, err: error }, 'the server opened no session; using the stateless protocol')
      if (error === unanswered) this.#silentUntil = clock.monotonic() + noSessionMs
      return { ...stateless, mayOfferSession: !refusesSession(error) }
    }
    const { hasSession } = other.connection.transport
    await (hasSession ? stateless : other).connection[Symbol.asyncDispose]()
    return hasSession ? other : stateless
  }

  /** Adds a hint to remove `era` if that setting may be the cause. */
  #explained(error: unknown): unknown {
    const { name, config } = this.#options
    if (config.era !== 'legacy' || !mayBeOtherEra(error)) return error
    const why = (this.#described(error) as Error).message
    const advice = `Remove mcpServers.${name}.era if the server supports no revision with sessions.`
    return new ToolwayError('SERVER_UNAVAILABLE', `${why} ${advice}`, { server: name, cause: error })
  }

  /** Shows the server's own error in response to the handshake: shortened, without secrets and hidden characters. */
  #described(error: unknown): unknown {
    if (!(error instanceof ServerError)) return error
    const { name, host } = this.#options
    const { code, message } = error.error.value
    const said = String(message).slice(0, maxErrorRead)
    const text = withoutHidden((host?.redact?.(said) ?? said).slice(0, maxErrorShown)).toWellFormed()
    const sentence = `${name} rejected initialize: ${JSON.stringify(text.replace(/\s+/g, ' '))} (error ${Number(code)}).`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server: name, cause: error })
  }
}

const firstMethod = ({ transport, era }: ServerConfig): HandshakeMethod =>
  transport === 'sse' || era === 'legacy' ? 'initialize' : 'probe'

const handshakes = { probe: negotiate, initialize, session: openSession } as const

class EndedByProbe extends Error {
  override readonly name = 'EndedByProbe'
}
