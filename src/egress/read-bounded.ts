/** Reads a stream to its end; throws `tooLarge()` as soon as it exceeds `maxBytes`. */
export async function readBounded(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  const { bytes, truncated } = await readBeginning(stream, maxBytes)
  if (truncated) throw tooLarge()
  return bytes
}

/** Reads at most the first `maxBytes`. Leaving the loop early closes the stream's connection or file. */
export async function readBeginning(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly truncated: boolean }> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream) {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxBytes) break
  }
  return { bytes: Buffer.concat(chunks, Math.min(length, maxBytes)), truncated: length > maxBytes }
}
