import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from './http1/request.ts'
import { checkMediaType } from './media-type.ts'
import { Refusal, rpc } from './refusal.ts'

/** Reads a JSON body of at most `limit` bytes; throws or rejects with a refusal as soon as it is clear that there is none. */
export function readBody(request: HttpRequest, limit: number): Promise<Buffer> | Buffer {
  checkHeaders(request, limit)
  return request.body ?? bodyOf(request as IncomingMessage, limit)
}

function bodyOf(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length <= limit) {
        chunks.push(chunk)
        return
      }
      request.off('data', onData).pause()
      reject(tooLarge(limit))
    }
    request.on('data', onData)
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length)))
    // Nobody is left to read this answer; the rejection only ends our own waiting.
    request.on('close', () => {
      if (!request.complete) reject(new Refusal(400, rpc.parse, 'The body ended before it was complete.'))
    })
  })
}

function checkHeaders({ headers }: HttpRequest, limit: number): void {
  checkMediaType(headers['content-type'])
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Refusal(415, rpc.request, 'Compressed bodies are not accepted: send the JSON as it is.')
  }
  if (Number(headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
}

const tooLarge = (limit: number) =>
  new Refusal(413, rpc.request, `The body is larger than ${limit} bytes: send less, or raise server.maxBody.`)
