/** The last bytes of an endless stream, in a space that never grows. */
export interface Tail {
  push(chunk: Buffer): void
  text(): string
}

export function createTail(size: number): Tail {
  const ring = Buffer.alloc(size)
  let total = 0
  return {
    push(chunk) {
      const last = chunk.subarray(Math.max(0, chunk.length - size))
      const at = (total + chunk.length - last.length) % size
      const fits = Math.min(last.length, size - at)
      last.copy(ring, at, 0, fits)
      last.copy(ring, 0, fits)
      total += chunk.length
    },
    text() {
      const at = total % size
      const bytes = total <= size ? ring.subarray(0, total) : Buffer.concat([ring.subarray(at), ring.subarray(0, at)])
      return bytes.toString('utf8')
    },
  }
}
