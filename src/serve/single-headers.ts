import type { IncomingMessage } from 'node:http'
import { Refusal, rpc } from './refusal.ts'

/**
 * Headers that have one value. A proxy in front of us may act on the second line where node:http takes the first, so
 * a request that repeats one is refused whatever the values are. Content-Length is in the list for completeness:
 * node:http's own parser refuses the second one already.
 */
const single: ReadonlySet<string> = new Set([
  ...['host', 'authorization', 'proxy-authorization', 'cookie', 'origin', 'sec-fetch-site'],
  ...['content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'expect'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'],
  ...['toolway-agent', 'toolway-admin', 'access-control-request-method'],
])

/** Headers that repeat one argument of a tool. */
const paramPrefix = 'mcp-param-'

/**
 * Refuses with 400 a request that repeats a header that has one value. Requests that come whole never get here: their
 * reader leaves every request that repeats a name to node:http.
 */
export function checkSingleHeaders({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): void {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const spelt = rawHeaders[at] as string
    const name = spelt.toLowerCase()
    if (!single.has(name) && !name.startsWith(paramPrefix)) continue
    if (seen.has(name)) {
      throw new Refusal(400, rpc.request, `The request has more than one ${shown(spelt)} header: send one.`)
    }
    seen.add(name)
  }
}

const shown = (name: string): string => (name.length > 64 ? `${name.slice(0, 64)}…` : name)
