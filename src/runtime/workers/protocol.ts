import type { SendHandle, Serializable } from 'node:child_process'
import type { Worker } from 'node:cluster'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createPortRpc, type PortRpcOptions, type RpcMethods, type RpcPeer, type RpcPort } from '../../lib/port-rpc.ts'
import type { DeliverMethods, PrimaryServiceMethods, PublishMethods, WorkerMember } from './ipc-stores.ts'

// The IPC protocol between the primary and its workers. During an upgrade, new workers talk to an older primary until
// all are replaced, so the names of methods and members are a wire format that must stay compatible.

/** The environment variable that contains the worker's identity as JSON. */
export const workerVariable = 'TOOLWAY_WORKER'

export interface WorkerIdentity {
  /** Never reused, so that a worker does not mistake its predecessor's tokens for its own. */
  readonly name: string
  readonly number: number
  readonly of: number
  /** Whether all workers had been running before this one was started. */
  readonly restarted?: boolean
  /** Whether the primary hands connections over. An older one does not. */
  readonly transfersConnections?: boolean
  /** Where the first worker listened. */
  readonly port?: number | undefined
}

export type PrimaryMethods = PrimaryServiceMethods &
  PublishMethods & {
    listening(facts: unknown): void
    pages(accept?: string): Promise<readonly WorkerMetricsPage[]>
  }

export type WorkerMethods = DeliverMethods & {
  members(members: readonly WorkerMember[]): void
  /** Stops the worker. `replaced`: another worker is listening at the same address, so clients can reconnect there. */
  stop(replaced: boolean): void
  page(accept?: string): MetricsPage | undefined
  /** Does nothing: the response shows that the worker is not blocked. */
  ping(): void
}

export interface MetricsPage {
  readonly contentType: string
  readonly body: string
}

/** Returns the metrics in the format that the Accept header selects. */
export type MetricsPages = (accept: string | undefined) => MetricsPage | Promise<MetricsPage>

export interface WorkerMetricsPage extends MetricsPage {
  readonly number: number
}

/** The channel between a worker and the primary, on either side. */
export const workerPort = (worker: Worker): RpcPort => ({
  send(message, handle) {
    // Ignore what `send` returns: it is also false while Node holds messages back behind a handle.
    if (worker.isConnected()) worker.send(message as Serializable, handle as SendHandle)
    return worker.isConnected()
  },
  onMessage: (listener) => void worker.on('message', listener),
})

export interface RpcConnectOptions extends Pick<PortRpcOptions, 'port' | 'methods' | 'timeoutMs'> {
  /** The other end's name in the log. */
  readonly peer: string
  readonly clock: Clock
  readonly log: Log
}

/** Opens an RPC connection that transmits `ToolwayError`s and logs when the other end stops responding. */
export function connectRpc<Remote extends RpcMethods>({ peer, log, ...options }: RpcConnectOptions): RpcPeer<Remote> {
  return createPortRpc<Remote>({
    ...options,
    errors: { encode: encodeError, decode: decodeError },
    onUp(up) {
      if (up) log.info({}, `${peer} is responding again`)
      else log.warn({}, `${peer} is not responding`)
    },
    onFailure: (err, method) => log.error({ err, method }, `a request from ${peer} failed`),
  })
}

type EncodedError = Pick<ToolwayError, 'code' | 'message' | 'details'>

function encodeError(thrown: unknown): EncodedError | undefined {
  if (!(thrown instanceof ToolwayError)) return undefined
  const { code, message, details } = thrown
  return { code, message, details: { retryAfterMs: details.retryAfterMs } }
}

function decodeError(encoded: object): ToolwayError {
  const { code, message, details } = encoded as EncodedError
  return new ToolwayError(code, message, details)
}
