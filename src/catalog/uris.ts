/**
 * The served form of a server's URI or URI template. Servers may well use equal URIs, so the server's name is inserted
 * after the scheme; the scheme stays, because hosts look at it (`ui://`). What has no literal scheme, or ours, is wrapped:
 * `demo://resource/1` → `demo://everything/resource/1`, `urn:x:1` → `urn:everything/x:1`, `{+path}` → `toolway://everything/{+path}`.
 * Expanding a served template and taking the server out again gives an expansion of the original template.
 */
export function servedUri(server: string, uri: string): string {
  const scheme = literalScheme(uri)
  if (scheme === undefined || isOurs(scheme)) return wrappedUri(server, uri)
  const start = uri.startsWith('//', scheme.length) ? scheme.length + 2 : scheme.length
  return `${uri.slice(0, start)}${segment(server)}/${uri.slice(start)}`
}

/** The form that any URI can be given, whatever it looks like. */
export const wrappedUri = (server: string, uri: string): string => `toolway://${segment(server)}/${uri}`

/** What `server` calls a served URI, or undefined if the URI is not in this server's form. */
export function originalUri(server: string, served: string): string | undefined {
  const scheme = literalScheme(served)
  if (scheme === undefined) return undefined
  const start = served.startsWith('//', scheme.length) ? scheme.length + 2 : scheme.length
  const inserted = `${segment(server)}/`
  if (!served.startsWith(inserted, start)) return undefined
  const rest = served.slice(start + inserted.length)
  return isOurs(scheme) ? rest : served.slice(0, start) + rest
}

/** Whether a URI already claims to be in our own form: such a one is never served as it is. */
export const isOwnUri = (uri: string): boolean => isOurs(literalScheme(uri) ?? '')

const literalScheme = (uri: string): string | undefined => /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(uri)?.[0]

const isOurs = (scheme: string): boolean => scheme.toLowerCase() === 'toolway:'

const segment = (server: string): string => encodeURIComponent(server.toWellFormed())

/** A URI template (RFC 6570), read once. */
export interface Template {
  /** Whether the URI can be an expansion. Time grows with the product of both lengths, never faster. */
  matches(uri: string): boolean
}

/** A longer URI is no expansion of anything that a server would list. */
const maxUri = 16_384

interface Expression {
  /** What an expansion starts with; an expression that has one may also expand to nothing. */
  readonly lead: string
  /** Characters that the expansion never contains. */
  readonly stop: string
}

const expressions: ReadonlyMap<string, Expression> = new Map([
  ['', { lead: '', stop: '/?#' }],
  ['+', { lead: '', stop: '' }],
  ['#', { lead: '#', stop: '' }],
  ['.', { lead: '.', stop: '/?#' }],
  ['/', { lead: '/', stop: '?#' }],
  [';', { lead: ';', stop: '/?#' }],
  ['?', { lead: '?', stop: '#' }],
  ['&', { lead: '&', stop: '#' }],
])

/**
 * Reads a template for matching. Servers write templates, so no regular expression is made of them: the matcher carries
 * the set of positions reached so far from part to part, which no template can make slow.
 */
export function parseTemplate(template: string): Template {
  const parts = split(template)
  return {
    matches: (uri) => {
      if (uri.length > maxUri) return false
      let reached: readonly number[] = [0]
      for (const part of parts) {
        reached = typeof part === 'string' ? afterLiteral(uri, reached, part) : afterExpression(uri, reached, part)
        if (reached.length === 0) return false
      }
      return reached[reached.length - 1] === uri.length
    },
  }
}

function split(template: string): readonly (string | Expression)[] {
  const parts: (string | Expression)[] = []
  let from = 0
  while (from < template.length) {
    const open = template.indexOf('{', from)
    const close = open < 0 ? -1 : template.indexOf('}', open)
    if (close < 0) break
    if (open > from) parts.push(template.slice(from, open))
    const operator = '+#./;?&'.includes(template[open + 1] as string) ? (template[open + 1] as string) : ''
    parts.push(expressions.get(operator) as Expression)
    from = close + 1
  }
  if (from < template.length) parts.push(template.slice(from))
  return parts
}

const afterLiteral = (uri: string, reached: readonly number[], literal: string): readonly number[] =>
  reached.filter((at) => uri.startsWith(literal, at)).map((at) => at + literal.length)

/** Positions ascend, so one sweep is enough: every position is entered once, however many ways lead to it. */
function afterExpression(uri: string, reached: readonly number[], { lead, stop }: Expression): readonly number[] {
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
