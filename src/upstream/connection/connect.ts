import type { ServerConfig } from '../../config/schema.ts'
import type { Peer } from '../../core/call.ts'
import type { Capabilities } from '../../core/capabilities.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { httpTransport } from '../transports/http.ts'
import { sseTransport } from '../transports/sse.ts'
import { createLastWords, type Redact } from '../transports/stderr.ts'
import { stdioTransport } from '../transports/stdio.ts'
import type { Transport } from '../transports/transport.ts'
import { refusesStreamableHttp } from '../transports/transport-errors.ts'
import { type Identity, initialize, introduce, type OpenLine } from './handshake.ts'
import type { Leftovers } from './orphan-reaper.ts'
import { type Connection, type ConnectionOptions, openConnection } from './rpc-connection.ts'

export interface ConnectOptions {
  readonly name: string
  readonly config: ServerConfig
  readonly identity: Identity
  /** Where processes are started: whoever sees to it that none stays behind. */
  readonly leftovers?: Leftovers
  /** Takes secrets out of what a process writes beside the protocol, before an error, the status or the log has it. */
  readonly redact?: Redact
  /** Where tokens come from, for servers that want OAuth. */
  readonly oauth?: Pick<OAuth, 'authorize'> | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Whom a line is for: what its client can be asked for, and whether it is for that client alone. */
export interface Tenancy {
  readonly capabilities: Capabilities
  readonly owned: boolean
  /** Whose credential it goes by, where each has its own. */
  readonly principal?: string | undefined
  readonly host?: ConnectionOptions['host']
  /** Tells the roots of an owner without a session, given its ways to be reached; undefined for other owners. */
  readonly roots?: ((through: readonly Peer[]) => Peer | undefined) | undefined
  /** The server asks its client for roots; the promise settles when it has them. */
  readonly onRoots?: ((told: Promise<void>) => void) | undefined
}

export interface Connect {
  (tenancy: Tenancy, signal: AbortSignal): Promise<OpenLine>
  /** The last lines that processes of the server wrote to stderr, without secrets. */
  stderr?(): readonly string[]
}

/** A first start may have to download a package; who answers over HTTP is there already. */
export const connectWithinMs = (transport: ServerConfig['transport']): number =>
  transport === 'stdio' ? 120_000 : 30_000

type Greeting = 'probe' | 'initialize'

/** Opens lines to one server. Which greeting it understands is found out once, and remembered for as long as that holds. */
export function createConnect(options: ConnectOptions): Connect {
  const { name, config, log } = options
  const unknown: Greeting = config.transport === 'sse' ? 'initialize' : 'probe'
  let greeting = unknown
  let transport = config.transport
  const words = createLastWords()

  const connect = async (tenancy: Tenancy, signal: AbortSignal) => {
    const line = transportFor(options, transport, tenancy, words.push)
    try {
      const open = await greet(line, options, tenancy, greeting, signal)
      if (open.introduction.era === 'legacy') greeting = 'initialize'
      return open
    } catch (error) {
      if (greeting === 'initialize' || signal.aborted) {
        // It may have come back as another one.
        greeting = unknown
        transport = config.transport
        throw error
      }
      if (error instanceof EndedByProbe) {
        log.debug({ server: name }, 'the server ended when it was probed; greeting it without that')
      } else if (transport === 'http' && refusesStreamableHttp(error)) {
        log.info({ server: name }, 'the server refused Streamable HTTP; trying the older HTTP+SSE')
        transport = 'sse'
      } else throw error
      // The first error stays the one to report: it is about what the configuration says.
      const second = greet(
        transportFor(options, transport, tenancy, words.push),
        options,
        tenancy,
        'initialize',
        signal,
      )
      const open = await second.catch((later) => {
        transport = config.transport
        throw error instanceof EndedByProbe ? later : error
      })
      greeting = 'initialize'
      return open
    }
  }
  return Object.assign(connect, { stderr: words.lines })
}

/** Whatever was opened is closed again if the two do not come to know each other. */
async function greet(
  transport: Transport,
  { name: server, identity, clock, log }: ConnectOptions,
  tenancy: Tenancy,
  greeting: Greeting,
  signal: AbortSignal,
): Promise<OpenLine> {
  const { capabilities, owned, principal, host, roots, onRoots } = tenancy
  let connection: Connection | undefined
  try {
    connection = await openConnection(transport, { server, owned, host, roots, onRoots, log }, signal)
    const options = { server, identity, capabilities, clock, log, signal }
    const introduction = await (greeting === 'probe' ? introduce : initialize)(connection, options)
    connection.serving = true
    return { connection, introduction, identity, ...(principal !== undefined && { principal }) }
  } catch (error) {
    await transport[Symbol.asyncDispose]()
    // A process that had started and is gone now may be one that cannot bear an unknown question.
    const started = connection !== undefined && transport.kind === 'stdio' && error instanceof ToolwayError
    throw started && greeting === 'probe' && !signal.aborted ? new EndedByProbe() : error
  }
}

class EndedByProbe extends Error {
  override readonly name = 'EndedByProbe'
}

function transportFor(
  { name, config, leftovers, redact, oauth, clock, log }: ConnectOptions,
  kind: ServerConfig['transport'],
  { principal }: Tenancy,
  wrote: (line: string) => void,
): Transport {
  if (config.transport === 'stdio') {
    const { command, args, cwd, env } = config
    return stdioTransport({ name, command, args, cwd, env, leftovers, redact, wrote, clock, log })
  }
  const { url, auth } = config
  const token = auth?.type === 'bearer' ? { authorization: `Bearer ${auth.token}` } : {}
  const authorize = oauth?.authorize(name, config, principal)
  const options = { name, url, headers: { ...token, ...config.headers }, authorize, clock, log }
  return kind === 'sse' ? sseTransport(options) : httpTransport(options)
}
