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
  if (url.username !== '' || url.password !== '') {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    kept.authorization = `Basic ${Buffer.from(pair).toString('base64')}`
  }
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (value !== undefined && !ours.has(lower)) kept[lower] = value
  }
  return kept
}

/** A value that a server gave us and that we may send back in a header: visible ASCII, of a sane length. */
export const isHeaderValue = (value: string | undefined): value is string =>
  value !== undefined && /^[\x21-\x7e]{1,1024}$/.test(value)
