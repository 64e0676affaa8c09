/** A W3C trace context, in headers or in MCP's `_meta`. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
  readonly baggage?: string
}

/** Limits of the W3C; longer values are mistakes or attempts to smuggle data. */
const maxState = 512
const maxBaggage = 8_192
const maxStates = 32
const maxBaggageMembers = 180

/** Version, trace id, span id, flags; later versions append fields. */
const written = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const nothing = /^0+$/

/** No characters that could end a header. */
const plain = /^[\x20-\x7e\t]*$/
const stateMember =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/
const baggageMember =
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*=[ \t]*(?:[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+[ \t]*)?(?:;[\x20-\x2b\x2d-\x7e\t]*)?$/

/** Strict, as the W3C demands: malformed values count as absent, so the result is safe to put into headers. */
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

/** Rewrites it in version 00. */
function placeOf(traceparent: string): string | undefined {
  const [, version, trace = '', span = '', flags = '', more] = written.exec(traceparent) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  return nothing.test(trace) || nothing.test(span) ? undefined : `00-${trace}-${span}-${flags}`
}

const isState = (value: unknown): value is string => isList(value, stateMember, maxStates, maxState)

const isBaggage = (value: unknown): value is string => isList(value, baggageMember, maxBaggageMembers, maxBaggage)

/** Empty members are allowed between commas, but at least one must not be empty. */
function isList(value: unknown, member: RegExp, maxMembers: number, maxLength: number): value is string {
  if (typeof value !== 'string' || value.length > maxLength || !plain.test(value)) return false
  const members = value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
  return members.length > 0 && members.length <= maxMembers && members.every((part) => member.test(part))
}

export const traceIdOf = ({ traceparent }: TraceContext): string => traceparent.slice(3, 35)

export const spanIdOf = ({ traceparent }: TraceContext): string => traceparent.slice(36, 52)

export const flagsOf = ({ traceparent }: TraceContext): number => Number.parseInt(traceparent.slice(53, 55), 16)

export const isSampled = (context: TraceContext): boolean => (flagsOf(context) & 1) === 1
