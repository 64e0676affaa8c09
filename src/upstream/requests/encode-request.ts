import type { Peer } from '../../core/call.ts'
import type { Capabilities } from '../../core/capabilities.ts'
import type { TraceContext } from '../../core/trace-context.ts'
import { asRecord } from '../../lib/is-record.ts'
import { definedMembers } from '../../wire/check-members.ts'
import { fromClients } from '../../wire/defined-members.ts'
import {
  type HandshakeResult,
  type InitializedConnection,
  modernMeta,
  standardHeaders,
} from '../connection/handshake.ts'
import type { RpcRequest } from '../connection/rpc-connection.ts'

/** Something to say to a server, before it is put into the words of its era. */
export interface RequestSpec {
  readonly method: string
  /** What stands between the braces of the params before `_meta`, in pieces. */
  readonly members?: readonly Buffer[]
  /** Other members that the caller sent; the server gets those that its revision defines for the method. */
  readonly rest?: Readonly<Record<string, unknown>> | undefined
  /** The caller's own `_meta`. */
  readonly meta?: Readonly<Record<string, unknown>>
  /** Those of whoever this is said for. */
  readonly capabilities: Capabilities
  /** The tool, prompt, resource or task that it is about. */
  readonly name?: string
  /** Arguments that the server wants to see in headers. */
  readonly headers?: Readonly<Record<string, string>>
  /** Its place in a trace, where it is traced: it stands in `_meta` and, where there are any, in the headers (F16). */
  readonly trace?: TraceContext | undefined
  readonly signal: AbortSignal
  /** Running it twice does no harm: it only reads, or the operator declared it idempotent (F12). */
  readonly repeatable?: boolean
  readonly peer?: Peer
  /** Set where progress gives the request more time: the server is asked for it, whether or not the caller did (V4). */
  readonly progressed?: (() => void) | undefined
  heard?(method: string, params: Buffer | undefined): void
}

/** Puts a phrase into the words of the era that this line speaks. */
export function encodeRequest({ handshake, identity }: InitializedConnection, said: RequestSpec): RpcRequest {
  const { method, meta = {}, peer, trace, progressed } = said
  const members = [...(said.members ?? []), ...restOf(said, handshake)]
  const modern = handshake.era === 'modern'
  const wantsProgress = meta.progressToken !== undefined
  return {
    method,
    ...(said.name !== undefined && { name: said.name }),
    params(id) {
      const whole = {
        ...meta,
        // What the caller said of another place does not belong to this one.
        ...(trace && { tracestate: undefined, ...trace }),
        ...((wantsProgress || progressed) && { progressToken: id }),
        ...(modern && modernMeta(identity, said.capabilities, peer?.logLevel)),
      }
      return paramsOf(members, whole)
    },
    ...(modern && { headers: { ...standardHeaders(method, said.name), ...said.headers, ...trace } }),
    ...(!modern && trace && { headers: { ...trace } }),
    signal: said.signal,
    repeatable: said.repeatable,
    ...(peer && { peer }),
    ownProgress: !wantsProgress,
    progressed,
    ...(said.heard && { heard: said.heard }),
  }
}

/** The rest as one more piece of members, without what the server's revision does not define (V1). */
function restOf(
  { method, rest, capabilities }: RequestSpec,
  { protocolVersion, capabilities: offered }: HandshakeResult,
): Buffer[] {
  const level = rest && fromClients[method]
  if (!level) return []
  const extension = (name: string) => declares(capabilities, name) && declares(offered, name)
  const defined = definedMembers(rest, level, { revision: protocolVersion, extension }, [])
  const text = JSON.stringify(defined).slice(1, -1)
  return text === '' ? [] : [Buffer.from(`,${text}`)]
}

const declares = ({ extensions }: Capabilities, name: string): boolean => asRecord(extensions)[name] !== undefined

const brace = Buffer.from('{')
const closing = Buffer.from('}')

function paramsOf(members: readonly Buffer[], meta: object): Buffer | undefined {
  const bare = Object.keys(meta).length === 0
  if (members.length === 0) return bare ? undefined : Buffer.from(`{"_meta":${JSON.stringify(meta)}}`)
  return Buffer.concat([brace, ...members, bare ? closing : Buffer.from(`,"_meta":${JSON.stringify(meta)}}`)])
}
