/** The `_meta` keys that the stateless revision reserves. */
export const metaKeys = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
} as const

const { protocolVersion, clientCapabilities, clientInfo, logLevel } = metaKeys

/** Keys that clients send with each request. They are valid for one hop and never forwarded. */
const envelope = new Set<string>([protocolVersion, clientCapabilities, clientInfo, logLevel])

/** A request's `_meta` without the keys that are valid for one hop; the same object if it has none of them. */
export function withoutEnvelope(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const keys = Object.keys(meta)
  const kept = keys.filter((key) => !envelope.has(key))
  return kept.length === keys.length ? meta : Object.fromEntries(kept.map((key) => [key, meta[key]]))
}

/** The headers that repeat parts of a request's body, in lower case. */
export const headerNames = { version: 'mcp-protocol-version', method: 'mcp-method', name: 'mcp-name' } as const

/** The error codes that the stateless revision added. */
export const modernErrors = { headerMismatch: -32020, missingCapability: -32021, unsupportedVersion: -32022 } as const

const nameFields: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

/** Which member of the params the Mcp-Name header repeats; undefined if the method has no such header. */
export const nameField = (method: string): string | undefined => nameFields.get(method)

/** Whether a revision is stateless. Revisions are dates, so they can be compared as text. */
export const isModernVersion = (version: string): boolean => version >= modernRevision

/** Session-based revisions that Toolway supports, newest first. */
export const legacyRevisions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

type LegacyRevision = (typeof legacyRevisions)[number]

/** The revision to request from a session-based server. */
export const latestLegacy: LegacyRevision = legacyRevisions[0]

/** The stateless revision. */
export const modernRevision = '2026-07-28'

/** Whether Toolway supports this revision, as a session-based (legacy) or stateless (modern) one. */
export const isKnownRevision = (version: string, era: 'legacy' | 'modern'): boolean =>
  era === 'modern' ? version === modernRevision : (legacyRevisions as readonly string[]).includes(version)
