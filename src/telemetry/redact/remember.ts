/** Names repeat from call to call; more different ones than this come from callers who make them up. */
const maxRemembered = 4096
const maxSecretLength = 512

/**
 * A redactor for names that remembers what it has said: each call has half a dozen of them, and they are almost always
 * the same. Forgets everything when it is full. Whoever has other secrets makes another one.
 */
export function remember(redact: (text: string) => string, most = maxRemembered): (text: string) => string {
  const known = new Map<string, string>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before
    const clean = redact(text)
    if (text.length > maxSecretLength) return clean
    if (known.size >= most) known.clear()
    known.set(text, clean)
    return clean
  }
}
