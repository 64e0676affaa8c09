/** What a server says when it wants another credential than it got. */
export interface Challenge {
  readonly status: number
  /** Where its metadata is (RFC 9728). */
  readonly resourceMetadata?: string
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[]
  /** `invalid_token`, `insufficient_scope` … */
  readonly error?: string
}

/** More than any server has to say, and little enough to be read with care. */
const maxLength = 8 * 1024

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const schemeOrParameter = new RegExp(
  `\\s*(?:(${token})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|(${token}))|(${token})(?=\\s|,|$))\\s*,?`,
  'y',
)

/** Reads the Bearer challenge of a refusal; of several schemes only that one is ours. */
export function readChallenge(status: number, headers: readonly string[]): Challenge {
  for (const header of headers) {
    const parameters = header.length > maxLength ? undefined : bearerParameters(header)
    if (!parameters) continue
    const resourceMetadata = parameters.get('resource_metadata')
    const scopes = scopesIn(parameters.get('scope'))
    const error = parameters.get('error')
    return {
      status,
      ...(resourceMetadata !== undefined && { resourceMetadata }),
      ...(scopes.length > 0 && { scopes }),
      ...(error !== undefined && { error }),
    }
  }
  return { status }
}

/** The words of a `scope` parameter. */
export const scopesIn = (text: string | undefined): readonly string[] => [
  ...new Set((text ?? '').split(/\s+/).filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(scope))),
]

/** One header may hold several schemes, each with parameters; those behind `Bearer` and before the next one. */
function bearerParameters(header: string): ReadonlyMap<string, string> | undefined {
  let found: Map<string, string> | undefined
  let ours = false
  schemeOrParameter.lastIndex = 0
  while (schemeOrParameter.lastIndex < header.length) {
    const [, name, inQuotes, bare, scheme] = schemeOrParameter.exec(header) ?? []
    if (scheme !== undefined) {
      if (found) break
      ours = scheme.toLowerCase() === 'bearer'
      if (ours) found = new Map()
    } else if (name !== undefined) {
      const value = inQuotes?.replaceAll(/\\(.)/g, '$1') ?? bare ?? ''
      // The first one counts: a parameter that comes twice is somebody's trick or mistake.
      if (ours && found && !found.has(name.toLowerCase())) found.set(name.toLowerCase(), value)
    } else break
  }
  return found
}
