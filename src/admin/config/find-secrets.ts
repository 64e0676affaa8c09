import {
  schemeIn,
  secretsInArgument,
  secretsInHeader,
  secretsInPublicUrl,
  secretsInUrl,
  secretsInVariable,
  type TextSpan,
} from '../../audit/redact/secrets.ts'
import { type SecretSpan, textAt } from '../../clients/secrets.ts'
import type { ServerDefinition } from '../../config/import/read-servers.ts'
import { secretKindAt } from '../../config/schema-lookup.ts'
import type { Path } from '../../config/tree.ts'

/**
 * Finds the secrets in a server's definition, even those too short or too common to be redacted in logs and audit
 * records. A variable or header with a secret is found as a whole, without the scheme, because it is stored as a whole.
 */
export function findSecrets(
  { env, headers, auth, url, args }: ServerDefinition,
  options?: Parameters<typeof secretsInArgument>[2],
): SecretSpan[] {
  const words = Array.isArray(args) ? args : []
  return [
    ...secretsInSection(env, ['env'], (name, value) => wholeValue(name, value, secretsInVariable(name, value), 0)),
    ...secretsInSection(headers, ['headers'], (name, value) =>
      wholeValue(name, value, secretsInHeader(name, value), schemeIn(value).length),
    ),
    ...secretsInSection(auth, ['auth'], inAuth),
    ...secretsAt(['url'], url, secretsInUrl),
    ...words.flatMap((word, index) => secretsAt(['args', index], word, () => secretsInArgument(words, index, options))),
  ]
}

export const secretTexts = (definition: ServerDefinition): string[] =>
  findSecrets(definition).map((secret) => textAt(definition, secret))

function secretsInSection(
  section: unknown,
  path: Path,
  find: (name: string, value: string) => readonly TextSpan[],
): SecretSpan[] {
  if (typeof section !== 'object' || section === null) return []
  return Object.entries(section).flatMap(([name, value]) =>
    secretsAt([...path, name], value, (text) => find(name, text)),
  )
}

/** The secrets in a value. A string with a reference such as `${NAME}` contains none. */
const secretsAt = (path: Path, value: unknown, find: (text: string) => readonly TextSpan[]): SecretSpan[] =>
  typeof value !== 'string' || /(?<!\$)\$\{/.test(value)
    ? []
    : find(value)
        .filter(({ start, end }) => end > start)
        .map((span) => ({ path, ...span }))

const wholeValue = (key: string, { length: end }: string, found: readonly TextSpan[], start: number): TextSpan[] =>
  found.length === 0 ? [] : [{ key, start, end }]

function inAuth(name: string, value: string): TextSpan[] {
  const kind = secretKindAt(['mcpServers', 'any', 'auth', name])
  if (kind === 'publicAddress') return secretsInPublicUrl(value)
  return kind === true ? [{ key: name, start: 0, end: value.length }] : []
}
