import { matches } from '../../core/wildcard.ts'

/** Whether the value under a name is never written down. */
export type IsSecretKey = (name: string) => boolean

/** Names repeat from call to call; more different ones than this come from callers who make them up. */
const maxRemembered = 4096
const maxName = 256

/**
 * Matches names as people mean them: `*api_key*` also stands for `apiKey`, `API-Key` and `x-api-key`, because case
 * and what separates words are left aside on both sides.
 */
export function createKeyMatcher(patterns: readonly string[]): IsSecretKey {
  const wanted = [...new Set(patterns.map(plain))].filter((pattern) => pattern !== '')
  const known = new Map<string, boolean>()
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    const text = plain(name)
    const answer = wanted.some((pattern) => matches(pattern, text))
    if (name.length <= maxName) {
      if (known.size >= maxRemembered) known.clear()
      known.set(name, answer)
    }
    return answer
  }
}

/** `max_tokens`, `tokens_used`, `token_count`, `max_schema_tokens`: how many there are, not what they are. */
const count =
  /tokens$|tokens?(?:count|limit|used|usage|budget|total|left|remaining|perminute)$|^(?:max|min|num|total|n)tokens?/

/** Whether a number under this name is a count: then it is no secret, whatever the name matches. */
export const isCount = (name: string): boolean => count.test(plain(name))

/** Letters, digits and `*`, in lower case; full-width and other look-alikes as their plain forms. */
const plain = (name: string): string =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}*]/gu, '')
