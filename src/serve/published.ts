import type { IncomingMessage, ServerResponse } from 'node:http'
import { wrongMethod } from './refusal.ts'

/** A document that is as public as the gateway's address: pages of any origin may read it, without a credential. */
export interface Published {
  readonly type: string
  readonly body: object
  readonly maxAgeSeconds: number
}

/** Answers whoever asks for such a document. */
export function publish(request: IncomingMessage, response: ServerResponse, published: Published): void {
  const { method } = request
  response.setHeader('Access-Control-Allow-Origin', '*')
  if (method === 'OPTIONS') {
    response.writeHead(204, { 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': '*' }).end()
    return
  }
  if (method !== 'GET' && method !== 'HEAD') throw wrongMethod(method, 'GET, HEAD')
  const body = JSON.stringify(published.body)
  response.writeHead(200, {
    'Content-Type': published.type,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': `max-age=${published.maxAgeSeconds}`,
  })
  response.end(method === 'HEAD' ? undefined : body)
}
