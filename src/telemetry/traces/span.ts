import { flagsOf, spanIdOf, type TraceContext, traceIdOf } from '../../core/trace-context.ts'

/** One stretch of time, as it is told to others. */
export interface TraceSpan {
  readonly place: TraceContext
  /** The span that it is part of. */
  readonly parent: TraceContext | undefined
  /** The parent is somebody else's. */
  readonly isRemote?: boolean
  readonly name: string
  readonly kind: keyof typeof kinds
  /** In milliseconds since the epoch, with fractions. */
  readonly start: number
  readonly end: number
  /** Ready to be written, with a comma between each. */
  readonly attributes: string
  /** The code of what went wrong. */
  readonly error?: string | undefined
}

const kinds = { internal: 1, server: 2, client: 3 } as const

/** The bits above the flags of the trace: whether it is known where the parent is, and whether it is elsewhere. */
const known = 0x100
const remote = 0x200

/** A span in the JSON of OTLP: ids in hex, times in nanoseconds as text. */
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

/** Microseconds fit into a number, nanoseconds do not. */
const nanoseconds = (ms: number): string => `${Math.round(ms * 1_000)}000`

/** A server's own error is known by the number that JSON-RPC gives it. */
function errorAttributes(code: string): string {
  const [, number] = /^rpc (-?\d+)$/.exec(code) ?? []
  if (number === undefined) return text('error.type', code)
  return `${text('error.type', number)},${text('rpc.response.status_code', number)}`
}

/** Longer values tell nobody more, and a queue of spans is bounded by what they weigh. */
const longest = 1_024

/** Text in JSON, whoever it comes from: half a character would make some receivers refuse the whole batch. */
const quoted = (value: string): string => JSON.stringify(value.slice(0, longest).toWellFormed())

/** One attribute in the JSON of OTLP. */
export const text = (key: string, value: string): string => `{"key":"${key}","value":{"stringValue":${quoted(value)}}}`

/** The same text again and again is written once: names, agents and revisions are few. Forgets them when they are many. */
export function remembered(key: string, most = 1_024): (value: string) => string {
  const known = new Map<string, string>()
  return (value) => {
    let written = known.get(value)
    if (written === undefined) {
      if (known.size >= most) known.clear()
      written = text(key, value)
      known.set(value, written)
    }
    return written
  }
}

export const whole = (key: string, value: number): string => `{"key":"${key}","value":{"intValue":"${value}"}}`
