/** A W3C trace context, in headers or in MCP's `_meta`. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
  readonly baggage?: string
}

/** Limits from the W3C specification. Longer values are mistakes or attempts to smuggle data. */
const maxStateLength = 512
const maxBaggage = 8_192
const maxStates = 32
const maxBaggageMembers = 180

/** Matches a `traceparent`: version, trace id, span id, flags. Later versions may append fields. */
const traceparentForm = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const onlyZeros = /^0+$/

/** Matches text without characters that could end a header. */
const headerSafe = /^[\x20-\x7e\t]*$/
const stateMember =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/
const baggageMember =
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*=[ \t]*(?:[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+[ \t]*)?(?:;[\x20-\x2b\x2d-\x7e\t]*)?$/

/** Reads a trace context. Malformed values count as absent, as W3C demands, so the result is safe in headers. */
export function readTraceContext(source: Readonly<Record<string, unknown>> | TraceContext): TraceContext | undefined {
  const { traceparent, tracestate, baggage } = source
  const place = typeof traceparent === 'string' ? normalizeTraceparent(traceparent) : undefined
  if (place === undefined) return undefined
  return { traceparent: place, ...(isState(tracestate) && { tracestate }), ...readBaggage({ baggage }) }
}

/** Reads baggage, which is valid without a trace. */
export const readBaggage = ({
  baggage,
}: Readonly<Record<string, unknown>>): Pick<TraceContext, 'baggage'> | undefined =>
  isBaggage(baggage) ? { baggage } : undefined

/** Rewrites a `traceparent` in version 00; undefined if it is invalid. */
function normalizeTraceparent(traceparent: string): string | undefined {
  const [, version, trace = '', span = '', flags = '', more] = traceparentForm.exec(traceparent) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  return onlyZeros.test(trace) || onlyZeros.test(span) ? undefined : `00-${trace}-${span}-${flags}`
}

const isState = (value: unknown): value is string => isMemberList(value, stateMember, maxStates, maxStateLength)

const isBaggage = (value: unknown): value is string => isMemberList(value, baggageMember, maxBaggageMembers, maxBaggage)

/** Whether a value is a valid list of members, separated by commas. Some members may be empty, but not all of them. */
function isMemberList(value: unknown, member: RegExp, maxMembers: number, maxLength: number): value is string {
  if (typeof value !== 'string' || value.length > maxLength || !headerSafe.test(value)) return false
  const members = value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
  return members.length > 0 && members.length <= maxMembers && members.every((part) => member.test(part))
}

export const traceIdOf = ({ traceparent }: TraceContext): string => traceparent.slice(3, 35)

export const spanIdOf = ({ traceparent }: TraceContext): string => traceparent.slice(36, 52)

export const traceFlags = ({ traceparent }: TraceContext): number => Number.parseInt(traceparent.slice(53, 55), 16)

export const isSampled = (context: TraceContext): boolean => (traceFlags(context) & 1) === 1
