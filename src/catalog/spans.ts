/** Where a value stands in JSON bytes: from its first byte up to, not including, `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

const quote = 0x22
const backslash = 0x5c

/** The members of the object at `span`; nothing if it is no object. Values are passed over, not parsed. */
export function* members(bytes: Buffer, span: Span): Generator<{ readonly key: string; readonly value: Span }> {
  if (bytes[span.start] !== 0x7b) return
  let at = blank(bytes, span.start + 1)
  while (at < span.end && bytes[at] === quote) {
    const keyEnd = stringEnd(bytes, at)
    const colon = blank(bytes, keyEnd)
    if (bytes[colon] !== 0x3a) return
    const value = valueAt(bytes, colon + 1)
    if (value.end <= value.start) return
    yield { key: bytes.toString('utf8', at + 1, keyEnd - 1), value }
    at = next(bytes, value.end)
  }
}

/** The elements of the array at `span`; nothing if it is no array. */
export function* elements(bytes: Buffer, span: Span): Generator<Span> {
  if (bytes[span.start] !== 0x5b) return
  let at = blank(bytes, span.start + 1)
  while (at < span.end && bytes[at] !== 0x5d) {
    const value = valueAt(bytes, at)
    if (value.end <= value.start) return
    yield value
    at = next(bytes, value.end)
  }
}

/** The whole value that starts at or after `at`. */
export function valueAt(bytes: Buffer, at: number): Span {
  const start = blank(bytes, at)
  const first = bytes[start]
  if (first === quote) return { start, end: stringEnd(bytes, start) }
  if (first === 0x7b || first === 0x5b) return { start, end: nestedEnd(bytes, start) }
  let end = start
  while (end < bytes.length && !isDelimiter(bytes[end] as number)) end++
  return { start, end }
}

/** Nobody has checked what lies deep inside: whatever is malformed ends the walk instead of confusing it. */
function nestedEnd(bytes: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) at = stringEnd(bytes, at) - 1
    else if (byte === 0x7b || byte === 0x5b) depth++
    else if (byte === 0x7d || byte === 0x5d) {
      depth--
      if (depth === 0) return at + 1
    }
  }
  return bytes.length
}

/** Hops from quote to quote, so that a long text or image costs next to nothing. */
function stringEnd(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(quote, start + 1); at >= 0; at = bytes.indexOf(quote, at + 1)) {
    let slashes = 0
    while (bytes[at - 1 - slashes] === backslash) slashes++
    if (slashes % 2 === 0) return at + 1
  }
  return bytes.length
}

function next(bytes: Buffer, at: number): number {
  const comma = blank(bytes, at)
  return bytes[comma] === 0x2c ? blank(bytes, comma + 1) : bytes.length
}

function blank(bytes: Buffer, at: number): number {
  let index = at
  while (bytes[index] === 0x20 || bytes[index] === 0x0a || bytes[index] === 0x0d || bytes[index] === 0x09) index++
  return index
}

const isDelimiter = (byte: number): boolean => byte === 0x2c || byte === 0x5d || byte === 0x7d || byte <= 0x20
