import type { ServerResponse } from 'node:http'
import type { HttpRequest } from './http1/request.ts'

const requestHeaders = [
  'Authorization',
  'Content-Type',
  'Accept',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Last-Event-ID',
  'Toolway-Agent',
  'traceparent',
  'tracestate',
  'baggage',
]

/** Tools, and the clients of OpenAI, name headers of their own, so which there are is for the page to say. */
const named = /^(?:mcp-param|x-stainless|openai)-[!#$%&'*+\-.^_`|~0-9a-z]+$/i

const exposed = 'Mcp-Session-Id, WWW-Authenticate, Retry-After, Toolway-Chat, X-Request-Id, X-Should-Retry'

/** Lets a page of an allowed origin read the answer. */
export function allowOrigin(response: ServerResponse, origin: string): void {
  response.setHeader('Access-Control-Allow-Origin', origin)
  response.setHeader('Access-Control-Expose-Headers', exposed)
  response.setHeader('Vary', 'Origin')
}

/** Whether a browser asks, on behalf of a page, what it may send. Such a question never carries a credential. */
export const isPreflight = ({ method, headers }: HttpRequest): boolean =>
  method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined

export function answerPreflight(response: ServerResponse): void {
  const asked = response.req.headers['access-control-request-headers'] ?? ''
  const params = asked.split(',').map((name) => name.trim())
  response.writeHead(204, {
    'Access-Control-Allow-Methods': 'POST, GET, DELETE',
    'Access-Control-Allow-Headers': [...requestHeaders, ...params.filter((name) => named.test(name))].join(', '),
    'Access-Control-Max-Age': '600',
  })
  response.end()
}
