import { type Capabilities, declaresExtension, type Peer } from '../../core/call.ts'
import type { TraceContext } from '../../core/trace-context.ts'
import { definedMembers } from '../../wire/check-members.ts'
import { clientMessages } from '../../wire/defined-members.ts'
import { type InitializedConnection, modernMeta, standardHeaders } from '../connection/handshake.ts'
import type { RpcRequest } from '../connection/rpc-connection.ts'

export interface RequestSpec {
  readonly method: string
  /** The members of the params that precede `_meta`, as pieces of JSON. */
  readonly members?: readonly Buffer[]
  /** Other members that the caller sent. Only those that the server's revision defines are forwarded. */
  readonly rest?: Readonly<Record<string, unknown>> | undefined
  readonly meta?: Readonly<Record<string, unknown>>
  readonly capabilities: Capabilities
  readonly name?: string
  /** Arguments that the server expects in headers. */
  readonly headers?: Readonly<Record<string, string>>
  /** Trace context, sent in `_meta` and in the headers (F16). */
  readonly trace?: TraceContext | undefined
  readonly signal: AbortSignal
  /** Whether the request is safe to run twice: it is read-only, or the operator declared it idempotent (F12). */
  readonly repeatable?: boolean
  readonly peer?: Peer
  /** Set if progress extends the timeout. Then Toolway asks for progress even if the caller did not (V4). */
  readonly progressed?: (() => void) | undefined
  onStreamNotification?(method: string, params: Buffer | undefined): void
}

/** Encodes a request for this connection's protocol revision. */
export function encodeRequest(open: InitializedConnection, spec: RequestSpec): RpcRequest {
  const { method, name, meta = {}, signal, repeatable, peer, trace, progressed, onStreamNotification } = spec
  const { members = [] } = spec
  const all = spec.rest ? [...members, ...encodeRest(spec, open)] : members
  const modern = open.handshake.era === 'modern'
  const wantsProgress = meta.progressToken !== undefined
  return {
    method,
    name,
    params(id) {
      const whole = {
        ...meta,
        // Replace the caller's trace state, which belongs to another span.
        ...(trace && { tracestate: undefined, ...trace }),
        ...((wantsProgress || progressed) && { progressToken: id }),
        ...(modern && modernMeta(open.identity, spec.capabilities, peer?.logLevel)),
      }
      const bare = Object.keys(whole).length === 0
      if (all.length === 0) return bare ? undefined : Buffer.from(`{"_meta":${JSON.stringify(whole)}}`)
      return Buffer.concat([openBrace, ...all, bare ? closeBrace : Buffer.from(`,"_meta":${JSON.stringify(whole)}}`)])
    },
    headers: modern ? { ...standardHeaders(method, name), ...spec.headers, ...trace } : trace && { ...trace },
    signal,
    repeatable,
    peer,
    ownProgress: !wantsProgress,
    progressed,
    onStreamNotification,
  }
}

const openBrace = Buffer.from('{')
const closeBrace = Buffer.from('}')

/** Encodes the members in `rest`, keeping only those that the server's protocol revision defines (V1). */
function encodeRest({ method, rest, capabilities }: RequestSpec, { handshake }: InitializedConnection): Buffer[] {
  const { protocolVersion, capabilities: offered } = handshake
  const level = rest && clientMessages[method]
  if (!level) return []
  const extension = (name: string) => declaresExtension(capabilities, name) && declaresExtension(offered, name)
  const defined = definedMembers(rest, level, { revision: protocolVersion, extension }, [])
  const text = JSON.stringify(defined).slice(1, -1)
  return text === '' ? [] : [Buffer.from(`,${text}`)]
}
