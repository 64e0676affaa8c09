/**
 * Words that make a name secret, wherever they stand in it. Other words may precede them directly (`PGPASSWORD`), but only
 * a few may follow (`secretkey`), because longer words are harmless: `keyboard`, `tokenizer`, `passwordless`.
 */
const secretWord =
  /(?:token|secret|passw(?:or[dt]|r?d)?|pass[-_]?(?:phrase|code)|(?:api|access|private|account|encryption|signing|master|auth|ssh|shared|service|client)[-_]?key|connection[-_]?string|credential|authorization|cookie(?!s?[-_. ]?(?:consent|banner|notice|policy|preference|setting|categor|domain|secure|same[-_]?site|http[-_]?only|max[-_]?age|lifetime|expir|enabled|disabled|prefix|parser)))s?(?:key|value|data|string|text|hash|salt|header|auth|id|jar|json|pem|base|b(?=64)|v(?=\d)|prod|production|live|staging|stage|dev|test|admin|root|user|old|new|db|confirm|confirmation|contents?|blob|der|plain|phrase|code){0,2}s?(?![a-z])|pwd$/i

/** Short names that occur within other words (`compass`, `format`), and at their start (`pass_rate`). */
const shortSecretWord =
  /^pass$|(?:^|[-_])(?:(?:pat|dsn|jwt)(?:$|[-_])|(?:db|database|user|admin|root|smtp|mail|email|imap|ftp|sql|mysql|pg|postgres|redis|mongo|amqp|ldap|proxy|auth|login|key|store|keystore)[-_]?pass$)/i

/** The last word of names such as `TOKEN_FILE`, `secretsDir`, `token_baseurl` and `tokenfile`, but not of `TOKEN_ADMIN`. */
const aboutSecret =
  /(?:^|[-_. ]|(?:base|user|data|display|token|secret|passw(?:or)?d|key|cookie|credential|auth|session|signature|webhook)s?)(?:file|path|dir|folder|home|root|url|uri|endpoint|host|port|name|type|mode|ttl|timeout|expiry|limit|count|max|min|size|algorithm|issuer){1,2}$/i

/** Whether a name refers to a property of a secret (its location, a count) rather than to the secret itself. */
export const isAboutSecret = (name: string): boolean => aboutSecret.test(separateWords(name))

/** Names of token counts, which are not secrets: `MAX_TOKENS`, `maxSchemaTokens`, `tokens_used`. */
const tokenCount =
  /(?:^|[-_])(?:max|min|num|total)[-_\w]*tokens?$|^(?:max|min|num|total)[A-Z]\w*tokens?$|tokens?[-_]?(?:used|usage|budget|per[-_]?\w+)$/i

/** Max length of a name that may stand for a number. The search for such names takes quadratic time. */
const maxCounted = 256

export function isSecretName(name: string): boolean {
  const words = separateWords(name)
  return (
    (secretWord.test(words) || shortSecretWord.test(words)) &&
    !aboutSecret.test(words) &&
    !(name.length <= maxCounted && tokenCount.test(name))
  )
}

/** `dbPass` as `db_Pass`. */
const separateWords = (name: string): string => name.replace(/(?<=[a-z\d])(?=[A-Z])/g, '_')

/**
 * Whether a value looks generated: a part of it mixes letters and digits at length, or switches case without a pattern.
 * False for `production-eu-west-1`, `en_US.UTF-8` and `gpt-4o-mini`.
 */
export function isRandom(value: string): boolean {
  return value.split(/[^A-Za-z0-9]+/).some((piece) => {
    if (piece.length < 12) return false
    const digits = piece.replace(/\D/g, '').length
    const letters = piece.length - digits
    if (digits > 0 && letters > 0) return caseSwitches(piece) >= 3
    return letters === piece.length && piece.length >= 20 && caseSwitches(piece) >= piece.length / 3
  })
}

function caseSwitches(text: string): number {
  let count = 0
  for (let index = 1; index < text.length; index++) if (kind(text, index) !== kind(text, index - 1)) count++
  return count
}

const kind = (text: string, at: number): number => {
  const code = text.charCodeAt(at)
  return code < 58 ? 0 : code < 91 ? 1 : 2
}

/** Whether a value is a file path: its parts are words, or it starts with a common folder. */
export const isPath = (value: string): boolean =>
  /^(?:~|\.{1,2})?[/\\]|^[A-Za-z]:[/\\]/.test(value) &&
  (/^[/\\](?:usr|etc|home|var|run|opt|tmp|root|mnt|srv|lib|bin|proc|dev|Users|Applications|Library|private|data|app|workspace|nix)(?:[/\\]|$)/.test(
    value,
  ) ||
    /^[~.A-Z]/i.test(value) ||
    value.split(/[/\\]/).every((part) => part === '' || !isRandom(part)))
