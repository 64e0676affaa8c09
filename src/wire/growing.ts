/** Bytes that arrive in pieces. Large ones are kept as they came and copied once; the space for small ones doubles. */
export interface Growing {
  readonly length: number
  append(piece: Buffer): void
  /** Gives away what was gathered and starts anew. */
  take(): Buffer
}

/** What is worth keeping by itself; a sender of single bytes must not cost a hundred times what it sends. */
const large = 16 * 1024

const nothing = Buffer.alloc(0)

export function growing(): Growing {
  let pieces: Buffer[] = []
  let space = nothing
  let used = 0
  let length = 0

  const keepSmall = () => {
    if (used > 0) pieces.push(space.subarray(0, used))
    space = nothing
    used = 0
  }

  const appendSmall = (piece: Buffer) => {
    if (used + piece.length > space.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * space.length, used + piece.length, 1024))
      larger.set(space.subarray(0, used))
      space = larger
    }
    space.set(piece, used)
    used += piece.length
  }

  return {
    get length() {
      return length
    },
    append(piece) {
      length += piece.length
      if (piece.length < large) return appendSmall(piece)
      keepSmall()
      pieces.push(piece)
    },
    take() {
      keepSmall()
      const gathered = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, length)
      pieces = []
      length = 0
      return gathered
    },
  }
}
