import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The requests of a connection that node:http has begun. */
interface BegunRequests {
  /** How many are unanswered. */
  readonly requests: number
  /** The response to the newest one. */
  readonly response?: ServerResponse | undefined
  /** Whether the client has pipelined too many requests, so that no more are begun. */
  readonly isOverrun?: boolean
}

/** Bytes that node:http gets at a time, at the start of a request and within one: it begins all requests in them at once. */
const maxStart = 1024
const maxSlice = 4 * 1024

/** Maximum bytes to hold per connection while a request is unanswered, besides one more chunk. */
const maxHeld = 16 * 1024

/** Whether the newest request has arrived as a whole and is not answered: what follows is pipelined. */
const isWaiting = ({ requests, response }: BegunRequests): boolean => requests > 0 && response?.req.complete === true

/**
 * Reads a connection for node:http, a small part at a time and nothing while a request waits for its answer. On its own,
 * node:http begins all pipelined requests of a chunk at once, thousands of them, and reads on: a few connections keep it
 * from everybody else for minutes (V6). To be called when node:http has the connection. Returns a function to be called
 * when all of the connection's requests are answered.
 */
export function readInSlices(socket: Socket, connection: BegunRequests): () => void {
  let held: Buffer | undefined
  const passOn = socket.listeners('data') as ((bytes: Buffer) => void)[]
  for (const listener of passOn) socket.off('data', listener)
  // This also makes node:http take its data from this event instead of the socket's handle.
  socket.on('data', (bytes: Buffer) => {
    if (connection.isOverrun) return
    if (held === undefined) pass(bytes)
    else hold(Buffer.concat([held, bytes]))
  })

  const hold = (bytes: Buffer) => {
    held = bytes
    if (bytes.length > maxHeld) socket.pause()
  }

  const pass = (bytes: Buffer) => {
    // Not writable: node:http has closed the connection, for example because of an invalid request.
    for (let at = 0; at < bytes.length && socket.writable && !connection.isOverrun; ) {
      if (isWaiting(connection)) {
        hold(bytes.subarray(at))
        return
      }
      const slice = bytes.subarray(at, at + (connection.requests > 0 ? maxSlice : maxStart))
      at += slice.length
      for (const listener of passOn) listener.call(socket, slice)
    }
  }

  const goOn = () => {
    const bytes = held
    held = undefined
    if (bytes === undefined || socket.destroyed) return
    socket.resume()
    pass(bytes)
  }
  return () => {
    if (held !== undefined) setImmediate(goOn)
  }
}
