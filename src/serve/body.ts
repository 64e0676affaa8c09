import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from './http1/request.ts'
import { Refusal, rpc } from './refusal.ts'

/** Reads a JSON body of at most `limit` bytes; throws or rejects with a refusal as soon as it is clear that there is none. */
export function readBody(request: HttpRequest, limit: number): Promise<Buffer> | Buffer {
  const refusal = refusedByHeaders(request, limit)
  if (refusal !== undefined) throw refusal
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

function refusedByHeaders(request: HttpRequest, limit: number): Refusal | undefined {
  const type = request.headers['content-type']
  if (type === undefined || !/^application\/json *(;|$)/i.test(type)) {
    return new Refusal(415, rpc.request, 'The body must be JSON: send "Content-Type: application/json".')
  }
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return new Refusal(415, rpc.request, 'Compressed bodies are not accepted: send the JSON as it is.')
  }
  return Number(request.headers['content-length'] ?? 0) > limit ? tooLarge(limit) : undefined
}

const tooLarge = (limit: number) =>
  new Refusal(413, rpc.request, `The body is larger than ${limit} bytes: send less, or raise server.maxBody.`)
