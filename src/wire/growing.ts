/** Bytes that arrive in pieces. Its space doubles, so pieces of any size cost linear time and bounded memory. */
export interface Growing {
  readonly length: number
  append(piece: Buffer): void
  /** Gives away what was gathered and starts anew. */
  take(): Buffer
}

export function growing(): Growing {
  let space = Buffer.alloc(0)
  let length = 0
  return {
    get length() {
      return length
    },
    append(piece) {
      if (length + piece.length > space.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(2 * space.length, length + piece.length, 1024))
        larger.set(space.subarray(0, length))
        space = larger
      }
      space.set(piece, length)
      length += piece.length
    },
    take() {
      const gathered = space.subarray(0, length)
      space = Buffer.alloc(0)
      length = 0
      return gathered
    },
  }
}
