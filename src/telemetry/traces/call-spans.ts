import { randomFillSync } from 'node:crypto'
import type { ServerConfig } from '../../config/schema.ts'
import type { Operation } from '../../core/audit.ts'
import type { Call, TrailStep } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Entry } from '../../core/entry.ts'
import type { Observed, Tracing } from '../../core/observer.ts'
import type { SourceStatus } from '../../core/source-status.ts'
import {
  isSampled,
  readBaggage,
  readTraceContext,
  spanIdOf,
  type TraceContext,
  traceFlags,
  traceIdOf,
} from '../../core/trace-context.ts'
import { memoize } from '../../lib/memoize.ts'
import type { OtlpDelivery } from './otlp-client.ts'
import {
  fixed32Member,
  fixed64Member,
  hexMember,
  intAttribute,
  intMember,
  member,
  textAttribute,
  textMember,
} from './otlp-client.ts'

export interface CallSpansOptions {
  readonly clock: Clock
  redact(text: string): string
  /** The servers that calls are sent to. All other sources run in this process. */
  readonly servers: ReadonlyMap<string, ServerFacts>
}

/** Converts a finished call into encoded spans: first the call itself, then one span for each step. */
export function createCallSpans({ clock, redact, servers }: CallSpansOptions): (observed: Observed) => string[] {
  const subjectOf = createSubjects({ redact, servers })
  const callerOf = createCallerAttributes(redact)
  const version = cachedText('mcp.protocol.version')
  const epoch = createEpoch(clock)

  const sent = ({ attributes, protocolVersion }: ServerFacts, attempt: number): string => {
    const spoken = protocolVersion()
    const known = spoken === undefined ? attributes : attributes + version(spoken)
    return attempt === 1 ? known : known + whole('toolway.attempt', attempt)
  }

  return ({ call, operation, at, start, end: endedAt, outcome, trail }) => {
    const place = trail.trace as TraceContext
    const parent = parentOf(call)
    const subject = subjectOf(call, operation)
    const facts = servers.get(call.entry.server)
    const offset = epoch(at, start)
    const end = offset + endedAt
    const wrong = outcome.kind === 'tool_error' ? outcome.kind : outcome.code
    const cached = trail.cache === undefined ? '' : text('toolway.cache', trail.cache)
    const own: TraceSpan = {
      place,
      parent,
      isRemote: parent !== undefined && call.trace === undefined,
      name: subject.name,
      kind: call.parent === undefined ? 'server' : 'internal',
      start: offset + start,
      end,
      attributes: subject.attributes + callerOf(call) + cached,
      error: wrong,
    }
    const spans = [encodeSpan(own)]
    let last = place
    let attempts = 0
    for (const step of trail.steps) {
      const time = { start: offset + step.start, end: step.end === undefined ? end : offset + step.end }
      // A step without a recorded end ended with the call, so it gets the call's error.
      const error = step.end === undefined ? wrong : step.error
      if (step.name !== 'attempt') spans.push(encodeSpan({ ...waiting(step, last), ...time, error }))
      else if (step.trace && facts) {
        last = step.trace
        const attributes = subject.attributes + sent(facts, ++attempts)
        const about = { place: last, parent: place, name: subject.name, kind: 'client', attributes } as const
        // A tool error belongs to the attempt that returned it.
        spans.push(
          encodeSpan({ ...about, ...time, error: error ?? (outcome.kind === 'tool_error' ? wrong : undefined) }),
        )
      }
    }
    return spans
  }
}

/** A span for a wait. Its context is never sent to a server, so its ID can be created afterwards. */
const waiting = ({ name }: TrailStep, parent: TraceContext): Omit<TraceSpan, 'start' | 'end'> => {
  const { traceparent } = parent
  const place = { ...parent, traceparent: `${traceparent.slice(0, 36)}${spanId()}${traceparent.slice(52)}` }
  return { place, parent, name, kind: 'internal', attributes: '' }
}

function createCallerAttributes(redact: (text: string) => string): (call: Call) => string {
  const agent = cachedText('toolway.agent')
  const version = cachedText('mcp.protocol.version')
  const session = cachedText('mcp.session.id')
  return ({ id, parent, caller, peer }) => {
    const who = agent(redact(caller.agent)) + text('toolway.call.id', id)
    // Only an outer call describes the request; the calls inside it do not repeat that description.
    const request = parent === undefined ? peer.request : undefined
    if (request === undefined) return who
    const known = who + text('jsonrpc.request.id', String(request.id)) + version(request.revision)
    if (caller.address === undefined) return known + overPipe
    // Omit the session IDs that Toolway itself creates for stateless clients, because they mean nothing elsewhere.
    return known + overHttp + (caller.session.startsWith('modern-') ? '' : session(caller.session))
  }
}

/** The subject of a call, in terms of the MCP semantic conventions. */
interface Subject {
  readonly method: string
  /** The span's name. It has low cardinality, so it contains no URIs. */
  readonly name: string
  /** Encoded attributes. */
  readonly attributes: string
}

const methods: Readonly<Record<string, string>> = {
  call_tool: 'tools/call',
  read_resource: 'resources/read',
  get_prompt: 'prompts/get',
  complete: 'completion/complete',
  subscribe: 'resources/subscribe',
}

/** Creates call subjects. They are cached by entry, because most calls use the same few entries. */
function createSubjects(options: Omit<CallSpansOptions, 'clock'>): (call: Call, operation: Operation) => Subject {
  const known = new WeakMap<Entry, Subject>()
  return ({ entry, input }, operation) => {
    const method = methods[operation] ?? operation
    let subject = known.get(entry)
    if (subject?.method !== method) {
      subject = subjectOf(entry, method, options)
      known.set(entry, subject)
    }
    if (entry.kind === 'tool' || entry.kind === 'prompt') return subject
    const uri = text('mcp.resource.uri', options.redact(input.uri ?? entry.name))
    return { ...subject, attributes: subject.attributes + uri }
  }
}

function subjectOf(
  { kind, server, name }: Entry,
  method: string,
  { redact, servers }: Omit<CallSpansOptions, 'clock'>,
): Subject {
  const clean = redact(name)
  const attributes = [text('mcp.method.name', method), text('toolway.server', redact(server))]
  if (kind === 'prompt') attributes.push(text('gen_ai.prompt.name', clean))
  if (kind === 'tool') {
    attributes.push(text('gen_ai.tool.name', clean), text('tool.type', servers.has(server) ? 'forwarded' : 'native'))
    if (method === 'tools/call') attributes.push(text('gen_ai.operation.name', 'execute_tool'))
  }
  const isNamed = kind === 'tool' || kind === 'prompt'
  return { method, name: isNamed ? `${method} ${clean}` : method, attributes: attributes.join('') }
}

/** Max difference between the clocks. A larger one means that the wall clock was set. */
const driftMs = 2

/** The offset of the monotonic clock from the epoch. Shared to keep spans in order; recomputed if the clock is set. */
function createEpoch(clock: Clock): (at: number, start: number) => number {
  let offset = clock.now() - performance.now()
  return (at, start) => {
    if (Math.abs(offset + start - at) > driftMs) offset = clock.now() - performance.now()
    return offset
  }
}

export interface TracedServer {
  readonly builtFrom: { readonly config: ServerConfig }
  readonly server: { status(): Pick<SourceStatus, 'protocolVersion'> }
}

interface ServerFacts {
  /** Encoded attributes. */
  readonly attributes: string
  /** The negotiated version. Undefined until the server has been initialized. */
  protocolVersion(): string | undefined
}

/** A server's span attributes. They hold only the host and port of its URL, because the rest may hold secrets. */
export function serverFacts({ builtFrom: { config }, server }: TracedServer): ServerFacts {
  const protocolVersion = () => server.status().protocolVersion
  if (config.transport === 'stdio') return { attributes: overPipe, protocolVersion }
  const { hostname, port, protocol } = new URL(config.url)
  const number = Number(port) || (protocol === 'https:' ? 443 : 80)
  const attributes = overHttp + text('server.address', hostname) + whole('server.port', number)
  return { attributes, protocolVersion }
}

interface TraceSpan {
  readonly place: TraceContext
  readonly parent: TraceContext | undefined
  /** Whether the parent span belongs to another process. */
  readonly isRemote?: boolean
  readonly name: string
  readonly kind: keyof typeof kinds
  /** The start and the end, in milliseconds since the epoch, with fractions. */
  readonly start: number
  readonly end: number
  /** Encoded attributes. */
  readonly attributes: string
  readonly error?: string | undefined
}

const kinds = { internal: 1, server: 2, client: 3 } as const

/** OTLP flag bits: whether `isRemote` is known, and its value. */
const known = 0x100
const remote = 0x200

/** A `Span` of OTLP. */
function encodeSpan({ place, parent, isRemote, name, kind, start, end, attributes, error }: TraceSpan): string {
  return (
    hexMember(1, traceIdOf(place)) +
    hexMember(2, spanIdOf(place)) +
    (place.tracestate === undefined ? '' : textMember(3, place.tracestate)) +
    (parent ? hexMember(4, spanIdOf(parent)) : '') +
    textMember(5, bounded(name)) +
    intMember(6, kinds[kind]) +
    fixed64Member(7, nanoseconds(start)) +
    fixed64Member(8, nanoseconds(Math.max(start, end))) +
    attributes +
    (error === undefined ? unsetStatus : errorAttributes(error) + failedStatus) +
    fixed32Member(16, traceFlags(place) | known | (isRemote ? remote : 0))
  )
}

const unsetStatus = member(15, '')
const failedStatus = member(15, intMember(3, 2))

/** A time in nanoseconds, with microsecond precision. */
const nanoseconds = (ms: number): bigint => BigInt(Math.round(ms * 1_000)) * 1_000n

/** The attributes for an error. JSON-RPC errors from servers are reported by their number. */
function errorAttributes(code: string): string {
  const [, number] = /^rpc (-?\d+)$/.exec(code) ?? []
  if (number === undefined) return text('error.type', code)
  return text('error.type', number) + text('rpc.response.status_code', number)
}

/** Max characters per value. Longer values add nothing, and they would fill the queue. */
const maxValue = 1_024

/** A bounded value. Replaces lone surrogates, because some receivers would reject the whole batch. */
const bounded = (value: string): string => value.slice(0, maxValue).toWellFormed()

const text = (key: string, value: string): string => textAttribute(9, key, bounded(value))

/** Like `text`, but caches the result, for recurring values such as agents and versions. */
const cachedText = (key: string): ((value: string) => string) =>
  memoize((value) => text(key, value), 1_024, Number.POSITIVE_INFINITY)

const whole = (key: string, value: number): string => intAttribute(9, key, value)

const overHttp = text('network.transport', 'tcp') + text('network.protocol.name', 'http')
const overPipe = text('network.transport', 'pipe')

/** Decides which calls are traced, and creates their contexts. `isForwarded` is false for in-process sources. */
export const createTracing = (sampling: TraceSampling, isForwarded: (server: string) => boolean): Tracing => ({
  enter(call) {
    const parent = parentOf(call)
    const trace = parent ? traceIdOf(parent) : traceId()
    const sampled = samples(sampling, trace, parent)
    if (!parent) return { ...behind(parent, trace, sampled ? 1 : 0), ...readBaggage(call.input.meta) }
    if (sampled) return behind(parent, trace, 1)
    // The call itself is not recorded, so the server gets the caller's context as its parent.
    return isSampled(parent) ? { ...parent, traceparent: `${parent.traceparent.slice(0, 53)}00` } : parent
  },
  attempt({ trace, entry }) {
    if (!trace || !isSampled(trace) || !isForwarded(entry.server)) return undefined
    const { traceparent } = trace
    return { ...trace, traceparent: `${traceparent.slice(0, 36)}${spanId()}${traceparent.slice(52)}` }
  },
})

/** The parent span's context: from one of Toolway's own calls, or from the client. */
const parentOf = ({ trace, input }: Call): TraceContext | undefined => trace ?? readTraceContext(input.meta)

/** The trace flag that marks the whole trace ID as random. */
const randomFlag = 2

function behind(parent: TraceContext | undefined, trace: string, sampled: 0 | 1): TraceContext {
  const flags = sampled | (parent ? traceFlags(parent) & randomFlag : 0)
  return { ...parent, traceparent: `00-${trace}-${spanId()}-0${flags}` }
}

export interface TraceSampling {
  readonly parentBased: boolean
  /** The share of traces that are recorded, from 0 to 1, if no parent decides. */
  readonly ratio: number
}

export const everything: TraceSampling = { parentBased: true, ratio: 1 }

function samples({ parentBased, ratio }: TraceSampling, traceId: string, parent: TraceContext | undefined): boolean {
  if (parent && parentBased) return isSampled(parent)
  // Decide by the trace ID, so that every participant makes the same decision.
  return ratio >= 1 || Number.parseInt(traceId.slice(-13), 16) < ratio * 16 ** 13
}

export interface TraceSettings {
  readonly url: string
  /** The headers, which may hold credentials. */
  readonly headers: Readonly<Record<string, string>>
  readonly resource: Readonly<Record<string, string>>
  readonly sampling: TraceSampling
  readonly delivery: OtlpDelivery
}

/** Random bytes for many IDs. They are requested together, because small requests for random bytes are slow. */
const pool = Buffer.alloc(8_192)
let used = pool.length

function random(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.toString('hex', used - bytes, used)
}

const traceId = (): string => random(16)

const spanId = (): string => random(8)
