import type { ServerConfig } from '../../config/schema.ts'
import type { Peer } from '../../core/call.ts'
import type { Capabilities } from '../../core/capabilities.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { httpTransport } from '../transports/http.ts'
import { sseTransport } from '../transports/sse.ts'
import { createRecentLines, type RedactText } from '../transports/stderr.ts'
import { stdioTransport } from '../transports/stdio.ts'
import type { Transport } from '../transports/transport.ts'
import { refusesStreamableHttp } from '../transports/transport-errors.ts'
import { type ClientIdentity, type InitializedConnection, initialize, negotiate } from './handshake.ts'
import type { OrphanReaper } from './orphan-reaper.ts'
import { openRpcConnection, type RpcConnection, type RpcConnectionOptions } from './rpc-connection.ts'

export interface ConnectorOptions {
  readonly name: string
  readonly config: ServerConfig
  readonly identity: ClientIdentity
  /** Where processes are started: whoever sees to it that none stays behind. */
  readonly orphanReaper?: OrphanReaper
  /** Takes secrets out of what a process writes beside the protocol, before an error, the status or the log has it. */
  readonly redact?: RedactText
  /** Where tokens come from, for servers that want OAuth. */
  readonly oauth?: Pick<OAuth, 'authorize'> | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Whom a line is for: what its client can be asked for, and whether it is for that client alone. */
export interface ConnectionScope {
  readonly capabilities: Capabilities
  readonly owned: boolean
  /** Whose credential it goes by, where each has its own. */
  readonly principal?: string | undefined
  readonly host?: RpcConnectionOptions['host']
  /** Tells the roots of an owner without a session, given its ways to be reached; undefined for other owners. */
  readonly roots?: ((through: readonly Peer[]) => Peer | undefined) | undefined
  /** The server asks its client for roots; the promise settles when it has them. */
  readonly onRoots?: ((told: Promise<void>) => void) | undefined
}

export interface Connector {
  (scope: ConnectionScope, signal: AbortSignal): Promise<InitializedConnection>
  /** The last lines that processes of the server wrote to stderr, without secrets. */
  stderr?(): readonly string[]
}

/** A first start may have to download a package; who answers over HTTP is there already. */
export const connectWithinMs = (transport: ServerConfig['transport']): number =>
  transport === 'stdio' ? 120_000 : 30_000

type HandshakeMethod = 'probe' | 'initialize'

/** Opens lines to one server. Which greeting it understands is found out once, and remembered for as long as that holds. */
export function createConnector(options: ConnectorOptions): Connector {
  const { name, config, log } = options
  const unknown: HandshakeMethod = config.transport === 'sse' ? 'initialize' : 'probe'
  let method = unknown
  let transport = config.transport
  const stderr = createRecentLines()

  const connect = async (scope: ConnectionScope, signal: AbortSignal) => {
    const opened = transportFor(options, transport, scope, stderr.push)
    try {
      const open = await openAndInitialize(opened, options, scope, method, signal)
      if (open.handshake.era === 'legacy') method = 'initialize'
      return open
    } catch (error) {
      if (method === 'initialize' || signal.aborted) {
        // It may have come back as another one.
        method = unknown
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
      const second = openAndInitialize(
        transportFor(options, transport, scope, stderr.push),
        options,
        scope,
        'initialize',
        signal,
      )
      const open = await second.catch((later) => {
        transport = config.transport
        throw error instanceof EndedByProbe ? later : error
      })
      method = 'initialize'
      return open
    }
  }
  return Object.assign(connect, { stderr: stderr.lines })
}

/** Whatever was opened is closed again if the two do not come to know each other. */
async function openAndInitialize(
  transport: Transport,
  { name: server, identity, clock, log }: ConnectorOptions,
  scope: ConnectionScope,
  method: HandshakeMethod,
  signal: AbortSignal,
): Promise<InitializedConnection> {
  const { capabilities, owned, principal, host, roots, onRoots } = scope
  let connection: RpcConnection | undefined
  try {
    connection = await openRpcConnection(transport, { server, owned, host, roots, onRoots, log }, signal)
    const options = { server, identity, capabilities, clock, log, signal }
    const handshake = await (method === 'probe' ? negotiate : initialize)(connection, options)
    connection.serving = true
    return { connection, handshake, identity, ...(principal !== undefined && { principal }) }
  } catch (error) {
    await transport[Symbol.asyncDispose]()
    // A process that had started and is gone now may be one that cannot bear an unknown question.
    const started = connection !== undefined && transport.kind === 'stdio' && error instanceof ToolwayError
    throw started && method === 'probe' && !signal.aborted ? new EndedByProbe() : error
  }
}

class EndedByProbe extends Error {
  override readonly name = 'EndedByProbe'
}

function transportFor(
  { name, config, orphanReaper, redact, oauth, clock, log }: ConnectorOptions,
  kind: ServerConfig['transport'],
  { principal }: ConnectionScope,
  wrote: (opened: string) => void,
): Transport {
  if (config.transport === 'stdio') {
    const { command, args, cwd, env } = config
    return stdioTransport({ name, command, args, cwd, env, orphanReaper, redact, wrote, clock, log })
  }
  const { url, auth } = config
  const token = auth?.type === 'bearer' ? { authorization: `Bearer ${auth.token}` } : {}
  const authorize = oauth?.authorize(name, config, principal)
  const options = { name, url, headers: { ...token, ...config.headers }, authorize, clock, log }
  return kind === 'sse' ? sseTransport(options) : httpTransport(options)
}
