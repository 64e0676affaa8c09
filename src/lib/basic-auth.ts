/** The value of an Authorization header (RFC 7617). */
export const basicAuth = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** The same from a URL; undefined if it has no credentials. */
export function basicAuthOf({ username, password }: URL): string | undefined {
  return username === '' && password === '' ? undefined : basicAuth(decodePercent(username), decodePercent(password))
}

/** Every spelling of the password in a URL, for redaction: as written, decoded, and as the header has it. */
export function urlSecrets(url: URL): string[] {
  const authorization = basicAuthOf(url)
  return authorization === undefined
    ? []
    : [url.password, decodePercent(url.password), authorization.slice('Basic '.length)].filter(
        (secret) => secret !== '',
      )
}

/** Returned unchanged if a `%` is not an escape. */
export function decodePercent(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
