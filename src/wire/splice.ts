/** A slice of a message, and what stands in its place from now on. */
export type Replacement = readonly [slice: Buffer, by: Buffer]

/**
 * Puts other bytes in the place of slices, which must be slices of `bytes` in the order in which they stand there:
 * their places follow from where both begin. Everything else stays to the byte; with nothing to replace it is `bytes`.
 */
export function splice(bytes: Buffer, replacements: readonly Replacement[]): Buffer {
  if (replacements.length === 0) return bytes
  const pieces: Buffer[] = []
  let from = 0
  for (const [slice, by] of replacements) {
    const at = slice.byteOffset - bytes.byteOffset
    pieces.push(bytes.subarray(from, at), by)
    from = at + slice.length
  }
  pieces.push(bytes.subarray(from))
  return Buffer.concat(pieces)
}

/** The text in the bytes of a JSON string; undefined for any other value. */
export const textOf = (slice: Buffer | undefined): string | undefined =>
  slice?.[0] === 0x22 ? (JSON.parse(slice.toString('utf8')) as string) : undefined

export const bytesOf = (text: string): Buffer => Buffer.from(JSON.stringify(text))
