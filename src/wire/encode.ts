import { Json } from '../core/json.ts'
import type { Id } from './message.ts'
import type { Pieces } from './pieces.ts'

/** A request, with its params spliced in as they are. */
export const requestBytes = (id: Id, method: string, params?: Json | Buffer): Buffer =>
  envelope(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)}`, ',"params":', params)

/** A notification, with its params spliced in as they are. */
export const notificationBytes = (method: string, params?: Json | Buffer): Buffer =>
  envelope(`{"jsonrpc":"2.0","method":${JSON.stringify(method)}`, ',"params":', params)

/** An answer around the bytes of a result. */
export const resultBytes = (id: Id, result: Json | Buffer): Buffer =>
  envelope(`{"jsonrpc":"2.0","id":${JSON.stringify(id)}`, ',"result":', result)

/** The same around a result in pieces, none of which is copied. */
export const resultPieces = (id: Id, result: Pieces): Pieces => [
  Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`),
  ...result,
  closing,
]

const closing = Buffer.from('}')

/** An answer that is an error, around an error's bytes or made from its parts. */
export const errorBytes = (
  id: Id | null,
  error: Json | Buffer | { readonly code: number; readonly message: string; readonly data?: unknown },
): Buffer =>
  envelope(
    `{"jsonrpc":"2.0","id":${JSON.stringify(id)}`,
    ',"error":',
    Buffer.isBuffer(error) || error instanceof Json ? error : Json.of(error),
  )

/** The one copy that is made of what is carried. */
function envelope(head: string, key: string, body: Json | Buffer | undefined): Buffer {
  if (body === undefined) return Buffer.from(`${head}}`)
  const bytes = Buffer.isBuffer(body) ? body : body.bytes
  const start = head + key
  const at = Buffer.byteLength(start)
  const whole = Buffer.allocUnsafe(at + bytes.length + 1)
  whole.write(start, 0, 'utf8')
  whole.set(bytes, at)
  whole[at + bytes.length] = 0x7d
  return whole
}
