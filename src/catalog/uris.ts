/**
 * The served form of a server's URI or URI template. Different servers may use equal URIs, so the server's name is
 * inserted after the scheme. The scheme stays, because hosts depend on it (`ui://`). A URI without a literal scheme, or
 * with Toolway's own scheme, is wrapped. Examples: `demo://resource/1` → `demo://everything/resource/1`, `urn:x:1` →
 * `urn:everything/x:1`, `{+path}` → `toolway://everything/{+path}`. Expanding a served template and removing the server
 * gives an expansion of the original template. `file:///x` becomes `file:///everything/x`, because some clients normalize
 * URLs, and would turn `file://everything//x` into another one.
 */
export function servedUri(server: string, uri: string): string {
  const scheme = literalScheme(uri)
  if (scheme === undefined || isOurs(scheme)) return wrappedUri(server, uri)
  const start = insertionPoint(uri, scheme)
  return `${uri.slice(0, start)}${segment(server)}/${uri.slice(start)}`
}

export const wrappedUri = (server: string, uri: string): string => `toolway://${segment(server)}/${uri}`

/** The server's own URI, or undefined if the served URI does not have this server's form. */
export function originalUri(server: string, served: string): string | undefined {
  const scheme = literalScheme(served)
  if (scheme === undefined) return undefined
  const start = insertionPoint(served, scheme)
  const inserted = `${segment(server)}/`
  if (!served.startsWith(inserted, start)) return undefined
  const rest = served.slice(start + inserted.length)
  return isOurs(scheme) ? rest : served.slice(0, start) + rest
}

/** Where the server's name is inserted: after the scheme and its slashes, of which a file without a host has three. */
function insertionPoint(uri: string, scheme: string): number {
  if (scheme.toLowerCase() === 'file:' && uri.startsWith('///', scheme.length)) return scheme.length + 3
  return uri.startsWith('//', scheme.length) ? scheme.length + 2 : scheme.length
}

/** Whether a URI has Toolway's own scheme. Such a URI is never served unchanged. */
export const isOwnUri = (uri: string): boolean => isOurs(literalScheme(uri) ?? '')

const literalScheme = (uri: string): string | undefined => /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(uri)?.[0]

const isOurs = (scheme: string): boolean => scheme.toLowerCase() === 'toolway:'

/** The part of a URI that is the encoded name of a server, if the URI has a server's served form. */
export function serverSegment(uri: string): string {
  const scheme = literalScheme(uri)
  if (scheme === undefined) return ''
  const start = insertionPoint(uri, scheme)
  return uri.slice(start, Math.max(start, uri.indexOf('/', start)))
}

export const segment = (server: string): string => encodeURIComponent(server.toWellFormed())

const maxMatchedUri = 16_384

interface TemplateExpression {
  /** An expansion's first character; empty if it is not fixed. The expression may also expand to nothing. */
  readonly lead: string
  readonly stop: string
}

const expressions: ReadonlyMap<string, TemplateExpression> = new Map([
  ['', { lead: '', stop: '/?#' }],
  ['+', { lead: '', stop: '' }],
  ['#', { lead: '#', stop: '' }],
  ['.', { lead: '.', stop: '/?#' }],
  ['/', { lead: '/', stop: '?#' }],
  [';', { lead: ';', stop: '/?#' }],
  ['?', { lead: '?', stop: '#' }],
  ['&', { lead: '&', stop: '#' }],
])

/** Whether a URI can be an expansion of a template. Takes time proportional to at most the product of their lengths. */
export type MatchesTemplate = (uri: string) => boolean

/**
 * Parses a template (RFC 6570) for matching. Templates come from servers, so they are not compiled to regular
 * expressions: the matcher passes the set of reached positions from part to part, so that no template can make it slow.
 */
export function templateMatcher(template: string): MatchesTemplate {
  const parts = splitTemplate(template)
  return (uri) => {
    if (uri.length > maxMatchedUri) return false
    let reached: readonly number[] = [0]
    for (const part of parts) {
      reached = typeof part === 'string' ? afterLiteral(uri, reached, part) : afterExpression(uri, reached, part)
      if (reached.length === 0) return false
    }
    return reached.at(-1) === uri.length
  }
}

function splitTemplate(template: string): readonly (string | TemplateExpression)[] {
  const parts: (string | TemplateExpression)[] = []
  let from = 0
  while (from < template.length) {
    const open = template.indexOf('{', from)
    const close = open < 0 ? -1 : template.indexOf('}', open)
    if (close < 0) break
    if (open > from) parts.push(template.slice(from, open))
    const operator = '+#./;?&'.includes(template[open + 1] as string) ? (template[open + 1] as string) : ''
    parts.push(expressions.get(operator) as TemplateExpression)
    from = close + 1
  }
  if (from < template.length) parts.push(template.slice(from))
  return parts
}

const afterLiteral = (uri: string, reached: readonly number[], literal: string): readonly number[] =>
  reached.filter((at) => uri.startsWith(literal, at)).map((at) => at + literal.length)

/** The positions reachable after an expression. They ascend, so one pass adds each of them once. */
function afterExpression(
  uri: string,
  reached: readonly number[],
  { lead, stop }: TemplateExpression,
): readonly number[] {
  const positions: number[] = []
  let swept = -1
  for (const start of reached) {
    if (lead !== '' && start > swept) {
      positions.push(start)
      swept = start
    }
    if (lead !== '' && uri[start] !== lead) continue
    let at = start + lead.length
    if (lead !== '' && at > swept) {
      positions.push(at)
      swept = at
    }
    if (at < swept) at = swept
    while (at < uri.length && !stop.includes(uri[at] as string)) {
      at++
      positions.push(at)
      swept = at
    }
  }
  return positions
}
