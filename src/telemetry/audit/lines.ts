import { open } from 'node:fs/promises'

/** One line of a file, without its newline. */
export interface Line {
  readonly bytes: Buffer
  readonly offset: number
  /** False for what stands after the last newline: a record that is being written, or that was torn. */
  readonly whole: boolean
}

const chunkBytes = 256 * 1024
/** Far beyond any record. What is longer is no line of ours and is handed out in pieces, so that memory stays bounded. */
const maxLine = 1024 * 1024

/** The lines of a file from a position on, in lists as they come, so that a reader need not await each one. */
export async function* linesOf(path: string, from = 0): AsyncGenerator<readonly Line[]> {
  const file = await open(path, 'r')
  try {
    let rest = Buffer.alloc(0)
    let offset = from
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes)
      const { bytesRead } = await file.read(chunk, 0, chunkBytes, offset + rest.length)
      if (bytesRead === 0) break
      const bytes =
        rest.length === 0 ? chunk.subarray(0, bytesRead) : Buffer.concat([rest, chunk.subarray(0, bytesRead)])
      const lines: Line[] = []
      let start = 0
      for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
        lines.push({ bytes: bytes.subarray(start, end), offset: offset + start, whole: true })
        start = end + 1
      }
      if (bytes.length - start > maxLine) {
        lines.push({ bytes: bytes.subarray(start), offset: offset + start, whole: true })
        start = bytes.length
      }
      rest = bytes.subarray(start)
      offset += start
      if (lines.length > 0) yield lines
    }
    if (rest.length > 0) yield [{ bytes: rest, offset, whole: false }]
  } finally {
    await file.close()
  }
}
