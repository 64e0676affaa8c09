import { decodePercent } from './decode-percent.ts'

/** The value of an Authorization header (RFC 7617). */
export const basicAuth = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** The value of an Authorization header for the credentials in a URL; undefined if the URL has none. */
export function basicAuthOf({ username, password }: URL): string | undefined {
  return username === '' && password === '' ? undefined : basicAuth(decodePercent(username), decodePercent(password))
}

/** Every spelling of a URL's password, for redaction: as written, decoded, and encoded as in the header. */
export function urlSecrets(url: URL): string[] {
  const authorization = basicAuthOf(url)
  return authorization === undefined
    ? []
    : [url.password, decodePercent(url.password), authorization.slice('Basic '.length)].filter(
        (secret) => secret !== '',
      )
}
