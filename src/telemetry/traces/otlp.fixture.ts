/** How a field of OTLP's protobuf definition reads in its JSON encoding. */
type FieldType = 'text' | 'hex' | 'int' | 'fixed' | Message
type Message = Readonly<Record<number, readonly [name: string, type: FieldType, isList?: true]>>

const keyValue: Message = { 1: ['key', 'text'], 2: ['value', { 1: ['stringValue', 'text'], 3: ['intValue', 'int'] }] }
const spanFields: Message = {
  1: ['traceId', 'hex'],
  2: ['spanId', 'hex'],
  3: ['traceState', 'text'],
  4: ['parentSpanId', 'hex'],
  5: ['name', 'text'],
  6: ['kind', 'int'],
  7: ['startTimeUnixNano', 'fixed'],
  8: ['endTimeUnixNano', 'fixed'],
  9: ['attributes', keyValue, true],
  15: ['status', { 3: ['code', 'int'] }],
  16: ['flags', 'fixed'],
}
const scope: Message = { 1: ['name', 'text'], 2: ['version', 'text'] }
const scopeSpans: Message = { 1: ['scope', scope], 2: ['spans', spanFields, true] }
const resource: Message = { 1: ['attributes', keyValue, true] }
const request: Message = {
  1: ['resourceSpans', { 1: ['resource', resource], 2: ['scopeSpans', scopeSpans, true] }, true],
}

/** Reads a message as a receiver does; it fails on every field that OTLP does not define. */
function decode(bytes: Buffer, message: Message): Record<string, unknown> {
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++]
      if (byte === undefined) throw new RangeError('the message ends too early')
      value += (byte % 128) * factor
      if (byte < 128) return value
    }
  }
  const read = (wireType: number): number | bigint | Buffer => {
    if (wireType === 0) return varint()
    const length = wireType === 2 ? varint() : wireType === 1 ? 8 : 4
    at += length
    const part = bytes.subarray(at - length, at)
    return wireType === 2 ? part : wireType === 1 ? part.readBigUInt64LE() : part.readUInt32LE()
  }
  const decoded: Record<string, unknown> = {}
  while (at < bytes.length) {
    const tag = varint()
    const field = message[tag >> 3]
    if (field === undefined) throw new RangeError(`OTLP has no field ${tag >> 3} here`)
    const [name, type, isList] = field
    const raw = read(tag & 7)
    const value =
      typeof type === 'object'
        ? decode(raw as Buffer, type)
        : type === 'text' || type === 'hex'
          ? (raw as Buffer).toString(type === 'hex' ? 'hex' : 'utf8')
          : typeof raw === 'bigint'
            ? String(raw)
            : raw
    if (isList) decoded[name] = [...((decoded[name] as unknown[]) ?? []), value]
    else decoded[name] = value
  }
  return decoded
}

export const decodeSpan = (span: string) => decode(Buffer.from(span, 'latin1'), spanFields)

export const decodeRequest = (body: Buffer) => decode(body, request)
