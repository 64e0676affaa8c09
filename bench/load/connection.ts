import { connect } from 'node:net'
import { type Answer, createAnswerReader } from './answer-reader.ts'
import { firstId, type PreparedRequest } from './orders.ts'

/** One kept-alive connection with at most one request on it. */
export interface Connection {
  /** Sends the next request of the row. `settled` hears of its end: undefined for a good answer, else what was wrong. */
  send(settled: (failure: string | undefined) => void): void
  close(): void
}

let lastId = firstId

/** Opens a connection to this machine, and no other. */
export function openConnection(port: number, requests: readonly PreparedRequest[]): Promise<Connection> {
  const prepared = requests.map(prepare)
  const { promise, resolve, reject } = Promise.withResolvers<Connection>()
  let turn = 0
  let current = prepared[0] as Prepared
  let waiting: ((failure: string | undefined) => void) | undefined
  let broken: string | undefined

  const settle = (failure: string | undefined) => {
    const settled = waiting
    waiting = undefined
    settled?.(failure)
  }
  const reader = createAnswerReader((answer) => settle(judge(answer, current)))
  const socket = connect({
    port,
    host: '127.0.0.1',
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafeSlow(256 * 1024),
      callback(bytes, buffer) {
        reader.push((buffer as Buffer).subarray(0, bytes))
        return true
      },
    },
  })
  const lost = (reason: string) => {
    broken = reason
    reject(new Error(reason))
    settle(reason)
  }
  socket.on('error', (error: NodeJS.ErrnoException) => lost(error.code ?? error.message))
  socket.on('close', () => lost(broken ?? 'connection closed'))
  socket.once('connect', () =>
    resolve({
      send(settled) {
        waiting = settled
        if (broken !== undefined) return settle(broken)
        current = prepared[turn] as Prepared
        turn = turn + 1 === prepared.length ? 0 : turn + 1
        number(current)
        // The answer is the proof that these bytes have left, so that they may be written over afterwards.
        socket.write(current.bytes)
      },
      close() {
        waiting = undefined
        socket.destroy()
      },
    }),
  )
  return promise
}

interface Prepared {
  readonly bytes: Buffer
  /** Where the id begins; -1 for a request without one. */
  readonly idAt: number
  readonly expected: Buffer
  readonly leastBytes: number
}

function prepare({ head, message, expected, leastBytes = 0 }: PreparedRequest): Prepared {
  const bytes = Buffer.from(`${head}\r\nContent-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`)
  return { bytes, idAt: bytes.indexOf(String(firstId)), expected: Buffer.from(expected), leastBytes }
}

/** Writes an id that nobody has had. */
function number({ bytes, idAt }: Prepared): void {
  if (idAt < 0) return
  lastId += 1
  for (let rest = lastId, at = idAt + 8; at >= idAt; at--) {
    bytes[at] = 48 + (rest % 10)
    rest = Math.floor(rest / 10)
  }
}

function judge({ status, bodyBytes, beginning }: Answer, { bytes, idAt, expected, leastBytes }: Prepared) {
  const whole = bodyBytes === beginning.length
  const good =
    status === 200 &&
    bodyBytes >= leastBytes &&
    beginning.includes(expected) &&
    // An answer that was mixed up is no answer. The id of a long one may come at its end, which is not kept.
    (idAt < 0 || !whole || beginning.includes(bytes.subarray(idAt, idAt + 9)))
  return good ? undefined : `${status}, ${bodyBytes} bytes: ${beginning.toString('utf8', 0, 300)}`
}
