/** Reads HTTP/1.1 answers off a connection as they come: no copies but of the first bytes of each body. */
export interface AnswerReader {
  /** The bytes are only looked at during the call. */
  push(chunk: Buffer): void
}

/** An answer that has come in whole. Its buffer is used again for the next one. */
export interface Answer {
  readonly status: number
  readonly bodyBytes: number
  /** The first bytes of the body. */
  readonly beginning: Buffer
}

const kept = 4096
const headEnd = Buffer.from('\r\n\r\n')

export function createAnswerReader(answered: (answer: Answer) => void): AnswerReader {
  const scratch = Buffer.allocUnsafe(kept)
  let state: 'head' | 'length' | 'chunk size' | 'chunk' | 'trailer' = 'head'
  /** A head or a size that was cut in two. */
  let partial = ''
  let status = 0
  let left = 0
  let bodyBytes = 0

  const keep = (chunk: Buffer, from: number, to: number) => {
    if (bodyBytes < kept) chunk.copy(scratch, bodyBytes, from, Math.min(to, from + kept - bodyBytes))
    bodyBytes += to - from
  }
  const finish = () => {
    state = 'head'
    answered({ status, bodyBytes, beginning: scratch.subarray(0, Math.min(bodyBytes, kept)) })
  }

  /** Gives back where the body begins, or -1 when the head has not come in whole. */
  const readHead = (chunk: Buffer, from: number): number => {
    const end = chunk.indexOf(headEnd, from)
    // The end itself may be cut in two.
    if (end < 0 || partial !== '') return readCutHead(chunk, from)
    begin(chunk.toString('latin1', from, end))
    return end + 4
  }
  const readCutHead = (chunk: Buffer, from: number): number => {
    const before = partial.length
    partial += chunk.toString('latin1', from)
    const end = partial.indexOf('\r\n\r\n')
    if (end < 0) return -1
    begin(partial.slice(0, end))
    partial = ''
    return from + end + 4 - before
  }
  const begin = (head: string) => {
    status = Number(head.slice(9, 12))
    bodyBytes = 0
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)
    left = length ? Number(length[1]) : 0
    state = !length && /\r\ntransfer-encoding: *chunked/i.test(head) ? 'chunk size' : 'length'
  }

  /** A line of a chunked body from `from` on: its text and where the next one begins; undefined when it is cut. */
  const readLine = (chunk: Buffer, from: number): number => {
    const end = chunk.indexOf(10, from)
    partial += chunk.toString('latin1', from, end < 0 ? chunk.length : end)
    return end < 0 ? -1 : end + 1
  }

  return {
    push(chunk) {
      let at = 0
      while (at < chunk.length || (state === 'length' && left === 0)) {
        if (state === 'head') {
          at = readHead(chunk, at)
          if (at < 0) return
          continue
        }
        if (state === 'length' || state === 'chunk') {
          const end = Math.min(chunk.length, at + left)
          keep(chunk, at, end)
          left -= end - at
          at = end
          if (left > 0) return
          if (state === 'length') finish()
          else state = 'chunk size'
          continue
        }
        at = readLine(chunk, at)
        if (at < 0) return
        const line = partial.trim()
        partial = ''
        if (state === 'trailer') {
          if (line === '') finish()
        } else if (line !== '') {
          // The line break after a chunk reads as an empty line.
          left = Number.parseInt(line, 16)
          state = left === 0 ? 'trailer' : 'chunk'
        }
      }
    },
  }
}
