import { basicAuthOf } from '../../lib/basic-auth.ts'

/** Header names that belong to the protocol or to HTTP itself. */
const ours = new Set([
  'accept',
  'connection',
  'content-length',
  'content-type',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'transfer-encoding',
])

/** The configured headers without those that are ours to set; credentials in the address become the usual header. */
export function configuredHeaders(
  url: URL,
  headers: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const kept: Record<string, string> = {}
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) kept.authorization = authorization
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (value !== undefined && !ours.has(lower)) kept[lower] = value
  }
  return kept
}

/** A value that a server gave us and that we may send back in a header: visible ASCII, of a sane length. */
export const isHeaderValue = (value: string | undefined): value is string =>
  value !== undefined && /^[\x21-\x7e]{1,1024}$/.test(value)
