import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { HttpConfig } from '../../config/schema.ts'
import { quote } from '../../lib/message-text.ts'
import { HttpError } from '../errors.ts'
import type { ReceivedRequest } from './request.ts'

export type Hosts = ReturnType<typeof allowedHosts>

/** The accepted Host and Origin headers. They must match exactly, as protection against DNS rebinding. */
export function allowedHosts(config: HttpConfig, port: number) {
  const own = [config.host, 'localhost', '127.0.0.1', '[::1]'].map((name) => withPort(name, port))
  const hosts = new Set(own)
  const origins = new Set(own.map((host) => `http://${host}`))
  // Accept configured names with and without the port, because clients that connect through a proxy do not send it.
  for (const name of config.allowedHosts) hosts.add(bracketIPv6(name).toLowerCase()).add(withPort(name, port))
  for (const origin of config.allowedOrigins) origins.add(origin.toLowerCase().replace(/\/$/, ''))

  return {
    check(host: string | undefined, origin: string | undefined): void {
      if (host === undefined || !(hosts.has(host) || hosts.has(host.toLowerCase()))) throw wrongHost(host)
      if (origin === undefined || origins.has(origin.toLowerCase()) || isOwnPage(host, origin)) return
      throw wrongOrigin(origin)
    },
    addressOf: (host: string): string => `${isDirect(host, port) ? 'http' : 'https'}://${host}`,
  }
}

/** Whether an accepted host sent the page itself. The scheme is unknown here: a proxy may add TLS. */
const isOwnPage = (host: string, origin: string): boolean =>
  /^https?:\/\//i.test(origin) && origin.slice(origin.indexOf('//') + 2).toLowerCase() === host.toLowerCase()

/** Whether clients with this Host header connect directly. Any other name is assumed to belong to a TLS proxy. */
const isDirect = (host: string, port: number): boolean =>
  port === 80 || host.endsWith(`:${port}`) || /^(localhost|127\.[\d.]+|\[::1\])(:|$)/i.test(host)

/** The name as clients send it in the Host header. The port is omitted only if it is 80. */
function withPort(name: string, port: number): string {
  const host = bracketIPv6(name).toLowerCase()
  return port === 80 || /:\d+$/.test(host) ? host : `${host}:${port}`
}

export const bracketIPv6 = (host: string): string => (/^[^[]*:.*:/.test(host) ? `[${host}]` : host)

const hostRule = 'server.allowedHosts'
const originRule = 'server.allowedOrigins'

function wrongHost(host: string | undefined): HttpError {
  const what = host === undefined ? 'The request has no Host header' : `The host ${quote(host)} is not allowed`
  const sentence = `${what}: use the address that the gateway printed at start, or add the host to server.allowedHosts.`
  return HttpError.of('DENIED_BY_POLICY', sentence, { rule: hostRule })
}

function wrongOrigin(origin: string): HttpError {
  const sentence = `The origin ${quote(origin)} is not allowed: to allow its pages, add it to server.allowedOrigins.`
  return HttpError.of('DENIED_BY_POLICY', sentence, { rule: originRule })
}

/** The rejected Host or Origin header, for the audit record. */
export function offendingHeader(
  { headers }: { readonly headers: IncomingHttpHeaders },
  { details: { data } }: HttpError,
): { readonly detail?: string } {
  const { rule } = (data ?? {}) as { rule?: string }
  if (rule === originRule) return { detail: `origin: ${headers.origin}` }
  return rule === hostRule ? { detail: `host: ${headers.host ?? '(none)'}` } : {}
}

const requestHeaders =
  'Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, Toolway-Agent, Toolway-Expose, traceparent, tracestate, baggage'

/** Names of headers that tools and OpenAI clients add. They are allowed if a preflight request names them. */
const allowedPreflightHeader = /^(?:mcp-param|x-stainless|openai)-[!#$%&'*+\-.^_`|~0-9a-z]+$/i

const exposedHeaders = 'Mcp-Session-Id, WWW-Authenticate, Retry-After, Toolway-Chat, X-Request-Id, X-Should-Retry'

export function allowOrigin(response: ServerResponse, origin: string): void {
  response.setHeader('Access-Control-Allow-Origin', origin)
  response.setHeader('Access-Control-Expose-Headers', exposedHeaders)
  response.setHeader('Vary', 'Origin')
}

/** Whether a request is a CORS preflight, which never carries a credential. */
export const isPreflight = ({ method, headers }: ReceivedRequest): boolean =>
  method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined

export function answerPreflight(response: ServerResponse): void {
  const asked = response.req.headers['access-control-request-headers'] ?? ''
  const names = asked.split(',').map((name) => name.trim())
  const added = names.filter((name) => allowedPreflightHeader.test(name))
  response.writeHead(204, {
    'Access-Control-Allow-Methods': 'POST, GET, DELETE',
    'Access-Control-Allow-Headers': [requestHeaders, ...added].join(', '),
    'Access-Control-Max-Age': '600',
  })
  response.end()
}
