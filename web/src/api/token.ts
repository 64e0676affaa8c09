/** The token in the URL fragment, which browsers do not send to servers. */
export function tokenIn(hash: string): string | undefined {
  const token = new URLSearchParams(hash.replace(/^#/, '')).get('token')
  return token === null || token === '' ? undefined : token
}
