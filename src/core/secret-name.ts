/** Names of variables, headers and parameters that hold secrets. */
const secretName =
  /token|secret|passw|passphrase|pwd$|(?:api|access|private|account|encryption|signing|master)[-_]?key|(?:^|[-_])(?:pat|dsn|jwt)(?:$|[-_])|credential|authorization|cookie/i

const aboutSecret =
  /(?:file|path|dir|folder|home|root|url|uri|host|port|name|type|mode|ttl|timeout|expiry|limit|count|max|min|size|algorithm|issuer)$/i

/** Whether a name says where a secret is, or how many of something there are, not what it is. */
export const isAboutSecret = (name: string): boolean => aboutSecret.test(name)

/** Counts of tokens: `MAX_TOKENS`, `maxSchemaTokens`, `tokens_used`. */
const counted =
  /(?:^|[-_])(?:max|min|num|total)[-_\w]*tokens?$|^(?:max|min|num|total)[A-Z]\w*tokens?$|tokens?[-_]?(?:used|usage|budget|per[-_]?\w+)$/i

/** Whether what goes by this name is a secret. */
export const isSecretName = (name: string): boolean =>
  secretName.test(name) && !isAboutSecret(name) && !counted.test(name)
