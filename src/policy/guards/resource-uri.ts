import type { GuardConfig } from './guard.ts'

/**
 * What a guard has to look at in the URI of a resource: to read one is to ask for a file or an address as much as with an
 * argument, and servers may read what they never list. What a scheme of their own means, only they know.
 */
export function guardedParts(kind: GuardConfig['kind'], uri: string): readonly string[] {
  // Parsers leave out what cannot be seen, so it must not hide a scheme.
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(uri.replace(/[\0-\x20]/g, ''))?.[1]?.toLowerCase()
  if (kind === 'url') return scheme !== undefined && ofTheWeb.has(scheme) ? [uri] : []
  if (kind !== 'path') return []
  if (scheme === 'file') return readingsOfFile(uri)
  return scheme?.length === 1 || (scheme === undefined && /^[\s.~/\\]/.test(uri)) ? [uri] : []
}

const ofTheWeb: ReadonlySet<string> = new Set(['http', 'https', 'ws', 'wss', 'ftp', 'sftp'])

/** Some servers cut off the scheme, others parse: then what may be a query is not part of the name of the file. */
function readingsOfFile(uri: string): readonly string[] {
  // Of the slashes before an absolute path one is left; of those before a host both, which no path may begin with.
  const path = uri.replace(/^\s*file:(?:\/\/(?=\/))?/i, '')
  const end = path.search(/[?#]/)
  return end === -1 ? [path] : [path, path.slice(0, end)]
}
