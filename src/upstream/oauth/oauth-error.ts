import { quoteAscii } from '../../lib/message-text.ts'
import { isProtected } from '../../lib/url.ts'

/** Thrown if no token could be obtained. Has a message without secrets, and the authorization server's error code. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  /** The `error` from the authorization server, if any. */
  readonly code: string | undefined
  /** Whether a host could not be reached, which says nothing about the credential. */
  readonly unreachable: boolean

  constructor(message: string, details: { code?: string | undefined; unreachable?: boolean; cause?: unknown } = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = details.code
    this.unreachable = details.unreachable ?? false
  }
}

/** Whether the authorization server does not know the client, or no longer accepts its secret. */
export const isClientRejected = (error: unknown): boolean =>
  error instanceof OAuthError && (error.code === 'invalid_client' || error.code === 'unauthorized_client')

/** Returns text only if it looks like an error code: anything else may be a secret, and codes reach logs and models. */
export const codeIn = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[A-Za-z][A-Za-z_]{0,40}$/.test(text) ? text : undefined

/** Quotes an untrusted URL or host, in which some letters look like those of another site. */
export const quoted = (text: unknown): string => quoteAscii(String(text), 200)

/** Parses a URL that credentials may be sent to: https, or loopback. `what` names the URL in the error. */
export function parseProtectedUrl(text: string, what: string): URL {
  // Check the text itself, because messages show it: the URL parser drops line breaks and encodes non-ASCII characters.
  if (!/^[\x21-\x7e]{1,2048}$/.test(text) || !URL.canParse(text))
    throw new OAuthError(`${what} is not a valid URL: ${quoted(text)}`)
  const url = new URL(text)
  if (!isProtected(url)) throw new OAuthError(`${what} does not use https: ${quoted(url.origin)}`)
  if (url.username !== '' || url.password !== '') throw new OAuthError(`${what} contains credentials`)
  return url
}

/** Whether two URLs have the same origin, or one's host is a subdomain of the other's. Siblings do not count. */
export function isSameSite(one: URL, other: URL): boolean {
  if (one.origin === other.origin) return true
  const isWithin = (part: URL, whole: URL) => part.hostname.endsWith(`.${whole.hostname}`)
  return one.protocol === other.protocol && (isWithin(one, other) || isWithin(other, one))
}
