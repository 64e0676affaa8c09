/** What decides which scopes are asked for. */
export interface ScopesKnown {
  /** By the operator; then what servers say counts only where they want more. */
  readonly configured?: readonly string[] | undefined
  /** By the challenge of the server. */
  readonly challenged?: readonly string[] | undefined
  /** Of the resource, as its metadata says. */
  readonly supported?: readonly string[] | undefined
  /** That a request lacked although it had a token, and those of that token. */
  readonly more?: readonly string[] | undefined
  /** Of the authorization server, as its metadata says. */
  readonly offered: readonly string[]
}

/** What a refresh token is asked for by, where an authorization server knows the word. */
const offline = 'offline_access'

/**
 * The scopes to ask for, none where nobody says any. As few as the server named for what was refused; all that it knows
 * only where it named none. Whoever asks again asks for what there was, too, or it would be gone.
 */
export function scopesToAsk({ configured, challenged, supported, more, offered }: ScopesKnown): readonly string[] {
  const base = configured ?? challenged ?? supported ?? []
  const lasting = offered.includes(offline) ? [offline] : []
  return [...new Set([...base, ...(more ?? []), ...lasting])]
}

/** The same for a client that acts for itself: it has no need of a refresh token. */
export const scopesForItself = (known: ScopesKnown): readonly string[] =>
  scopesToAsk(known).filter((scope) => scope !== offline)
