/**
 * OTLP in protobuf. Until a batch is sent, messages are strings in which each character is a byte: V8 joins strings
 * without copying them, and their lengths are those of the messages.
 */

/** A member that is a message or bytes. */
export const member = (number: number, bytes: string): string => tag(number, 2) + varint(bytes.length) + bytes

export const textMember = (number: number, text: string): string => member(number, utf8(text))

export const hexMember = (number: number, hex: string): string =>
  member(number, Buffer.from(hex, 'hex').toString('latin1'))

export const intMember = (number: number, value: number): string => tag(number, 0) + varint(value)

export function fixed32Member(number: number, value: number): string {
  scratch.writeUInt32LE(value)
  return tag(number, 5) + scratch.toString('latin1', 0, 4)
}

export function fixed64Member(number: number, value: bigint): string {
  scratch.writeBigUInt64LE(value)
  return tag(number, 1) + scratch.toString('latin1', 0, 8)
}

const scratch = Buffer.alloc(8)

const tag = (number: number, wireType: number): string => varint(number * 8 + wireType)

function varint(value: number): string {
  let bytes = ''
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes += String.fromCharCode((rest % 128) | 128)
  return bytes + String.fromCharCode(rest)
}

const utf8 = (text: string): string => (isAscii.test(text) ? text : Buffer.from(text).toString('latin1'))

const isAscii = /^[\0-\x7f]*$/

/** A key with a value, as member 1 of resources. Spans have them as member 9. */
export const textAttribute = (number: number, key: string, value: string): string =>
  member(number, textMember(1, key) + member(2, textMember(1, value)))

export const intAttribute = (number: number, key: string, value: number): string =>
  member(number, textMember(1, key) + member(2, intMember(3, value)))

/** Creates the encoder of requests with these attributes of the resource, for spans that `member` does not wrap yet. */
export function createTraceEncoder(resource: Readonly<Record<string, string>>, version: string) {
  const attributes = Object.entries(resource).map(([key, value]) => textAttribute(1, key, value))
  const head = member(1, attributes.join(''))
  const scope = member(1, textMember(1, 'toolway') + textMember(2, version))
  return (spans: readonly string[]): Buffer => {
    const scopeSpans = member(2, scope + spans.map((span) => member(2, span)).join(''))
    return Buffer.from(member(1, head + scopeSpans), 'latin1')
  }
}

/** The number of rejected spans in a response: member 1 of the partial success, which is member 1. */
export function rejectedSpans(response: Uint8Array): number {
  const partialSuccess = firstMember(response)
  const rejected = partialSuccess instanceof Uint8Array ? firstMember(partialSuccess) : undefined
  return typeof rejected === 'number' ? rejected : 0
}

/** The first member of a message if its number is 1 and it is an integer or has a length. */
function firstMember(message: Uint8Array): number | Uint8Array | undefined {
  let at = 1
  let value = 0
  for (let factor = 1; at < message.length; factor *= 128) {
    const byte = message[at++] as number
    value += (byte % 128) * factor
    if (byte < 128) break
  }
  if (message[0] === 0x08) return value
  return message[0] === 0x0a ? message.subarray(at, at + value) : undefined
}
