/** What went wrong on the way to a token: a sentence that never holds a secret, and what the other side called it. */
export class OAuthProblem extends Error {
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
