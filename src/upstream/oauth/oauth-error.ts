/** What went wrong on the way to a token: a sentence that never holds a secret, and what the other side called it. */
export class OAuthError extends Error {
  override readonly name = 'OAuthProblem'
  /** The `error` of the authorization server, where it gave one. */
  readonly code: string | undefined
  /** Nobody could be asked: that says nothing about the credential. */
  readonly unreachable: boolean

  constructor(message: string, { code, unreachable = false, cause }: ProblemDetails = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.unreachable = unreachable
  }
}

interface ProblemDetails {
  readonly code?: string | undefined
  readonly unreachable?: boolean
  readonly cause?: unknown
}

/**
 * A code that others gave, such as `invalid_grant` or `DPoP`; undefined for anything else. Whoever is sent a secret may
 * send it back where a code belongs, and a code ends up in logs and in front of models.
 */
export const codeIn = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[A-Za-z][A-Za-z_]{0,40}$/.test(text) ? text : undefined

/** What others wrote, as it may stand in one of our sentences: short, on one line, plain characters only. */
export const quoted = (text: unknown): string =>
  JSON.stringify(
    String(text)
      .replaceAll(/[^\x20-\x7e]+/g, ' ')
      .slice(0, 200),
  )

/** Names of this machine that no other machine can answer to. */
export const isLoopback = ({ hostname }: URL): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)

/**
 * An address that credentials may travel to: over TLS, or without leaving the machine. `what` is whose address it is,
 * for whoever has to mend it.
 */
export function safeAddress(text: string, what: string): URL {
  // A parser leaves out line ends and encodes what is not ASCII; whoever is shown the text itself would see them.
  if (!/^[\x21-\x7e]{1,2048}$/.test(text) || !URL.canParse(text))
    throw new OAuthError(`${what} is no address: ${quoted(text)}`)
  const url = new URL(text)
  const safe = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))
  if (!safe) throw new OAuthError(`${what} is not https: ${quoted(url.origin)}`)
  if (url.username !== '' || url.password !== '') throw new OAuthError(`${what} has a password in it`)
  return url
}

/** Of one origin, or one a part of the other's domain: two that merely share a parent may be strangers to each other. */
export function isSameSite(one: URL, other: URL): boolean {
  if (one.origin === other.origin) return true
  const isWithin = (part: URL, whole: URL) => part.hostname.endsWith(`.${whole.hostname}`)
  return one.protocol === other.protocol && (isWithin(one, other) || isWithin(other, one))
}
