import { flagsOf, spanIdOf, type TraceContext, traceIdOf } from '../../core/trace-context.ts'
import { memoize } from '../../lib/memoize.ts'

export interface TraceSpan {
  readonly place: TraceContext
  readonly parent: TraceContext | undefined
  /** Whether the parent span belongs to another process. */
  readonly isRemote?: boolean
  readonly name: string
  readonly kind: keyof typeof kinds
  /** The start and the end, in milliseconds since the epoch, with fractions. */
  readonly start: number
  readonly end: number
  /** Attributes as JSON, separated by commas. */
  readonly attributes: string
  readonly error?: string | undefined
}

const kinds = { internal: 1, server: 2, client: 3 } as const

/** OTLP flag bits: whether `isRemote` is known, and its value. */
const known = 0x100
const remote = 0x200

/** A span as OTLP JSON, with IDs in hex and times in nanoseconds as text. */
export function spanJson({ place, parent, isRemote, name, kind, start, end, attributes, error }: TraceSpan): string {
  const all = error === undefined ? attributes : `${attributes}${attributes && ','}${errorAttributes(error)}`
  const flags = flagsOf(place) | known | (isRemote ? remote : 0)
  return (
    `{"traceId":"${traceIdOf(place)}","spanId":"${spanIdOf(place)}"` +
    (parent ? `,"parentSpanId":"${spanIdOf(parent)}"` : '') +
    (place.tracestate === undefined ? '' : `,"traceState":${JSON.stringify(place.tracestate)}`) +
    `,"flags":${flags},"name":${quoted(name)},"kind":${kinds[kind]}` +
    `,"startTimeUnixNano":"${nanoseconds(start)}","endTimeUnixNano":"${nanoseconds(Math.max(start, end))}"` +
    `,"attributes":[${all}],"status":${error === undefined ? '{}' : '{"code":2}'}}`
  )
}

/** A time in nanoseconds, as text. Microsecond precision, because nanoseconds do not fit into a number. */
const nanoseconds = (ms: number): string => `${Math.round(ms * 1_000)}000`

/** The attributes for an error. JSON-RPC errors from servers are reported by their number. */
function errorAttributes(code: string): string {
  const [, number] = /^rpc (-?\d+)$/.exec(code) ?? []
  if (number === undefined) return text('error.type', code)
  return `${text('error.type', number)},${text('rpc.response.status_code', number)}`
}

/** Max characters per value. Longer values add nothing, and they would fill the queue. */
const maxValue = 1_024

/** A value as JSON. Replaces lone surrogates, because some receivers would reject the whole batch. */
const quoted = (value: string): string => JSON.stringify(value.slice(0, maxValue).toWellFormed())

export const text = (key: string, value: string): string => `{"key":"${key}","value":{"stringValue":${quoted(value)}}}`

/** Like `text`, but caches the JSON, for recurring values such as agents and versions. */
export const cachedText = (key: string): ((value: string) => string) =>
  memoize((value) => text(key, value), 1_024, Number.POSITIVE_INFINITY)

export const whole = (key: string, value: number): string => `{"key":"${key}","value":{"intValue":"${value}"}}`
