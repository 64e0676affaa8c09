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
