const secretName =
  /token|secret|passw|pass[-_]?(?:phrase|code)|pwd$|(?:api|access|private|account|encryption|signing|master|auth|ssh|shared|service|client)[-_]?key|connection[-_]?string|credential|authorization|cookie/i

/** Short names that occur within other words (`compass`, `format`), and at their start (`pass_rate`). */
const secretWord =
  /^pass$|(?:^|[-_])(?:(?:pat|dsn|jwt)(?:$|[-_])|(?:db|database|user|admin|root|smtp|mail|email|imap|ftp|sql|mysql|pg|postgres|redis|mongo|amqp|ldap|proxy|auth|login|key|store|keystore)[-_]?pass$)/i

const aboutSecret =
  /(?:file|path|dir|folder|home|root|url|uri|host|port|name|type|mode|ttl|timeout|expiry|limit|count|max|min|size|algorithm|issuer)$/i

/** Whether a name refers to a property of a secret (its location, a count) rather than to the secret itself. */
export const isAboutSecret = (name: string): boolean => aboutSecret.test(name)

/** Names of token counts, which are not secrets: `MAX_TOKENS`, `maxSchemaTokens`, `tokens_used`. */
const counted =
  /(?:^|[-_])(?:max|min|num|total)[-_\w]*tokens?$|^(?:max|min|num|total)[A-Z]\w*tokens?$|tokens?[-_]?(?:used|usage|budget|per[-_]?\w+)$/i

/** Max length of a name that may stand for a number. The search for such names takes quadratic time. */
const maxCounted = 256

export const isSecretName = (name: string): boolean =>
  (secretName.test(name) || secretWord.test(separated(name))) &&
  !isAboutSecret(name) &&
  !(name.length <= maxCounted && counted.test(name))

/** `dbPass` as `db_Pass`. */
const separated = (name: string): string => name.replace(/(?<=[a-z\d])(?=[A-Z])/g, '_')

/**
 * Whether a value looks generated: a part of it mixes letters and digits at length, or switches case without a pattern.
 * False for `production-eu-west-1`, `en_US.UTF-8` and `gpt-4o-mini`.
 */
export function isRandom(value: string): boolean {
  return value.split(/[^A-Za-z0-9]+/).some((piece) => {
    if (piece.length < 12) return false
    const digits = piece.replace(/\D/g, '').length
    const letters = piece.length - digits
    if (digits > 0 && letters > 0) return switches(piece) >= 3
    return letters === piece.length && piece.length >= 20 && switches(piece) >= piece.length / 3
  })
}

function switches(text: string): number {
  let count = 0
  for (let index = 1; index < text.length; index++) if (kind(text, index) !== kind(text, index - 1)) count++
  return count
}

const kind = (text: string, at: number): number => {
  const code = text.charCodeAt(at)
  return code < 58 ? 0 : code < 91 ? 1 : 2
}
