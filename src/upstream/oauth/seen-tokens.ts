/** Access tokens that went to servers, for whoever must keep them out of what is written down. */
export interface SeenTokens {
  add(token: string): void
  /** Those that came last; another list whenever one has come. */
  list(): readonly string[]
}

/** Looking for each takes memory, and time whenever another comes. Those before are about to expire, or have. */
const most = 256

export function createSeenTokens(): SeenTokens {
  let seen: readonly string[] = []
  return {
    add(token) {
      const part = secretPart(token)
      if (!seen.includes(part)) seen = [...seen, part].slice(-most)
    },
    list: () => seen,
  }
}

/** Of a JSON Web Token the signature: it is short, and the rest is good for nothing without it. */
function secretPart(token: string): string {
  const [, signature] = /^[\w-]+\.[\w-]+\.([\w-]{32,})$/.exec(token) ?? []
  return signature ?? token
}
