/** A place in a distributed trace, as the W3C writes it in headers and MCP in `_meta`. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
  readonly baggage?: string
}

/** Longer ones are somebody's mistake, or an attempt to have us carry something else. */
const maxState = 512
const maxBaggage = 8_192
const maxStates = 32
const maxBaggageMembers = 180

/** Version, trace id, span id, flags; what a later version adds stands behind them. */
const written = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const nothing = /^0+$/

/** Nothing that could end a header. */
const plain = /^[\x20-\x7e\t]*$/
const stateMember =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/
const baggageMember =
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*=[ \t]*(?:[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+[ \t]*)?(?:;[\x20-\x2b\x2d-\x7e\t]*)?$/

/**
 * Reads a place in a trace from headers or from `_meta`. Strictly, as the W3C wants it: what is malformed counts as
 * not there, so that whatever is read may go into headers again.
 */
export function readTraceContext(source: Readonly<Record<string, unknown>> | TraceContext): TraceContext | undefined {
  const { traceparent, tracestate, baggage } = source
  const place = typeof traceparent === 'string' ? placeOf(traceparent) : undefined
  if (place === undefined) return undefined
  return {
    traceparent: place,
    ...(isState(tracestate) && { tracestate }),
    ...(isBaggage(baggage) && { baggage }),
  }
}

/** The same in the words of the version that we speak. */
function placeOf(traceparent: string): string | undefined {
  const [, version, trace = '', span = '', flags = '', more] = written.exec(traceparent) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  return nothing.test(trace) || nothing.test(span) ? undefined : `00-${trace}-${span}-${flags}`
}

const isState = (value: unknown): value is string => isList(value, stateMember, maxStates, maxState)

const isBaggage = (value: unknown): value is string => isList(value, baggageMember, maxBaggageMembers, maxBaggage)

/** Empty members are allowed between the commas, but not nothing else. */
function isList(value: unknown, member: RegExp, most: number, longest: number): value is string {
  if (typeof value !== 'string' || value.length > longest || !plain.test(value)) return false
  const members = value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
  return members.length > 0 && members.length <= most && members.every((part) => member.test(part))
}

export const traceIdOf = ({ traceparent }: TraceContext): string => traceparent.slice(3, 35)

export const spanIdOf = ({ traceparent }: TraceContext): string => traceparent.slice(36, 52)

/** What the flags say; the last bit is about being sampled. */
export const flagsOf = ({ traceparent }: TraceContext): number => Number.parseInt(traceparent.slice(53, 55), 16)

export const isSampled = (context: TraceContext): boolean => (flagsOf(context) & 1) === 1
