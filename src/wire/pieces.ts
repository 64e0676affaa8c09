/** Bytes that belong together and were not copied together: what is large is only ever copied by the kernel. */
export type Pieces = readonly Buffer[]

export const joined = (pieces: Pieces): Buffer => (pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces))

export function lengthOf(pieces: Pieces): number {
  let length = 0
  for (const piece of pieces) length += piece.length
  return length
}
