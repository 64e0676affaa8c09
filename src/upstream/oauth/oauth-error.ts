/** Why no token could be obtained: a message without secrets, and the authorization server's error code. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  /** The `error` of the authorization server, if any. */
  readonly code: string | undefined
  /** Nobody could be reached, which says nothing about the credential. */
  readonly unreachable: boolean

  constructor(message: string, details: { code?: string | undefined; unreachable?: boolean; cause?: unknown } = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = details.code
    this.unreachable = details.unreachable ?? false
  }
}

/**
 * An error code such as `invalid_grant`; undefined for anything else. A server may echo a secret where a code belongs,
 * and codes reach logs and models.
 */
export const codeIn = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[A-Za-z][A-Za-z_]{0,40}$/.test(text) ? text : undefined

/** Foreign text for a message: short, on one line, plain characters only. */
export const quoted = (text: unknown): string =>
  JSON.stringify(
    String(text)
      .replaceAll(/[^\x20-\x7e]+/g, ' ')
      .slice(0, 200),
  )

/** Host names that only this machine can answer to. */
export const isLoopback = ({ hostname }: URL): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)

/** A URL that credentials may be sent to: https, or loopback. `what` names it in the error. */
export function safeAddress(text: string, what: string): URL {
  // The parser drops line breaks and encodes non-ASCII characters, but messages show the text itself.
  if (!/^[\x21-\x7e]{1,2048}$/.test(text) || !URL.canParse(text))
    throw new OAuthError(`${what} is not a valid URL: ${quoted(text)}`)
  const url = new URL(text)
  const safe = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))
  if (!safe) throw new OAuthError(`${what} is not https: ${quoted(url.origin)}`)
  if (url.username !== '' || url.password !== '') throw new OAuthError(`${what} contains a password`)
  return url
}

/** The same origin, or one a subdomain of the other: hosts that only share a parent domain may be unrelated. */
export function isSameSite(one: URL, other: URL): boolean {
  if (one.origin === other.origin) return true
  const isWithin = (part: URL, whole: URL) => part.hostname.endsWith(`.${whole.hostname}`)
  return one.protocol === other.protocol && (isWithin(one, other) || isWithin(other, one))
}
