const secretName =
  /token|secret|passw|passphrase|pwd$|(?:api|access|private|account|encryption|signing|master)[-_]?key|(?:^|[-_])(?:pat|dsn|jwt)(?:$|[-_])|credential|authorization|cookie/i

const aboutSecret =
  /(?:file|path|dir|folder|home|root|url|uri|host|port|name|type|mode|ttl|timeout|expiry|limit|count|max|min|size|algorithm|issuer)$/i

/** Whether a name refers to a property of a secret (its location, a count) rather than to the secret itself. */
export const isAboutSecret = (name: string): boolean => aboutSecret.test(name)

/** Names of token counts, which are not secrets: `MAX_TOKENS`, `maxSchemaTokens`, `tokens_used`. */
const counted =
  /(?:^|[-_])(?:max|min|num|total)[-_\w]*tokens?$|^(?:max|min|num|total)[A-Z]\w*tokens?$|tokens?[-_]?(?:used|usage|budget|per[-_]?\w+)$/i

export const isSecretName = (name: string): boolean =>
  secretName.test(name) && !isAboutSecret(name) && !counted.test(name)
