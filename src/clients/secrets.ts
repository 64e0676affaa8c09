import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ServerDefinition } from '../config/import/read-servers.ts'
import { type ReferenceScheme, unescapeVariables } from '../config/interpolate.ts'
import type { Path } from '../config/tree.ts'
import { replaceSpans } from '../lib/replace-spans.ts'

/** The location of a secret in a server definition. The secret must not be copied to the configuration. */
export interface SecretSpan {
  readonly path: Path
  readonly start: number
  readonly end: number
  /** The variable, header or option that contains the secret. */
  readonly key: string
}

/** Finds the secrets in a server definition. Injected, because only the redaction code can recognize secrets. */
export type FindSecrets = (definition: ServerDefinition) => readonly SecretSpan[]

/** Stores a secret and returns a reference to it. */
export type StoreSecret = (secret: string, server: string, key: string) => Promise<string>

/** Replaces each secret with a reference of its own, and with one of these where the secret is repeated elsewhere. */
export async function withoutSecrets(
  server: string,
  definition: ServerDefinition,
  find: FindSecrets,
  keep: StoreSecret,
): Promise<{ readonly definition: ServerDefinition; readonly moved: number }> {
  const repeated = new Map<string, string>()
  const spans = new Map<string, (SecretSpan & { readonly reference: string })[]>()
  const references = new Set<string>()
  for (const secret of find(definition)) {
    const place = JSON.stringify(secret.path)
    const text = textAt(definition, secret)
    const reference = await keep(unescapeVariables(text), server, secret.key)
    spans.set(place, [...(spans.get(place) ?? []), { ...secret, reference }])
    references.add(reference)
    if (isUnmistakable(text) && !repeated.has(text)) repeated.set(text, reference)
  }
  const pattern = repeated.size > 0 ? wholeTokens([...repeated.keys()]) : undefined
  const replaced = (text: string, path: Path): string => {
    const found = [...(spans.get(JSON.stringify(path)) ?? [])]
    for (const match of pattern && mayRepeat(definition, path) ? text.matchAll(pattern) : []) {
      const [start, end] = [match.index, match.index + match[0].length]
      if (found.some((span) => span.start < end && start < span.end)) continue
      found.push({ path, start, end, key: '', reference: repeated.get(match[0]) ?? match[0] })
    }
    return replaceSpans(text, found, (_, { reference }) => reference)
  }
  return { definition: mapTexts(definition, replaced) as ServerDefinition, moved: references.size }
}

const longSecret = 20

/** Whether a secret is replaced wherever it is repeated: others, such as `postgres`, may be there for another reason. */
const isUnmistakable = (secret: string): boolean =>
  secret.length >= longSecret || (secret.length >= 8 && /\d/.test(secret) && /\p{L}/u.test(secret))

/**
 * Matches the secrets as whole words, and in the path of a URL, but not in its scheme, user name or host. A long secret
 * is one wherever it stands, such as in `{token:…}` or `user:…@host`.
 */
function wholeTokens(secrets: readonly string[]): RegExp {
  // Longer secrets first: a secret may be part of a longer one.
  const sorted = secrets.toSorted((a, b) => b.length - a.length)
  const escaped = (secret: string) => secret.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  const any = sorted.map(escaped)
  const long = sorted.filter(({ length }) => length >= longSecret).map(escaped)
  const anywhere = long.length > 0 ? `(?<![A-Za-z\\d])(?:${long.join('|')})(?![A-Za-z\\d])|` : ''
  const word = `(?<=^|[\\s=:,;"'(])(?:${any.join('|')})(?=$|[\\s,;&"')#])`
  const segment = `(?<=://[^\\s/?#]+/(?:[^\\s?#]*/)?)(?:${any.join('|')})(?=$|[\\s/?#"'])`
  return new RegExp(`${anywhere}${word}|${segment}`, 'g')
}

/** Whether a secret may be repeated in a value. Commands, folders, user names and hosts are not secret. */
function mayRepeat({ args }: ServerDefinition, [section, key]: Path): boolean {
  if (section === 'url' || section === 'headers') return true
  const name = section === 'args' && Array.isArray(args) ? args[Number(key) - 1] : key
  const isOpen = section === 'args' ? /^-.*(?:user|login|host|name)$/i : /(?:user|login|host|name)$/i
  return (section === 'args' || section === 'env') && !isOpen.test(String(name))
}

export function textAt(definition: ServerDefinition, { path, start, end }: SecretSpan): string {
  const found = path.reduce<unknown>((part, key) => (part as Record<string | number, unknown>)[key], definition)
  return String(found).slice(start, end)
}

/** Applies `change` to every string value, but not to keys. */
export function mapTexts(value: unknown, change: (text: string, path: Path) => string, path: Path = []): unknown {
  if (typeof value === 'string') return change(value, path)
  if (Array.isArray(value)) return value.map((item, index) => mapTexts(item, change, [...path, index]))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, mapTexts(part, change, [...path, key])]))
}

/** Names of referenced variables that have no default and must be set for the definition to work. */
export const variablesIn = (value: unknown): string[] => namesIn(value, /(?<!\$)\$\{(?:env:)?([A-Za-z_]\w*)\}/g)

export const filesIn = (value: unknown): string[] => namesIn(value, /(?<!\$)\$\{file:([^}]+)\}/g)

export const schemesIn = (value: unknown): ReferenceScheme[] =>
  namesIn(value, /(?<!\$)\$\{(file|exec):/g) as ReferenceScheme[]

function namesIn(value: unknown, pattern: RegExp): string[] {
  const names = new Set<string>()
  mapTexts(value, (text) => {
    for (const [, name = ''] of text.matchAll(pattern)) names.add(name)
    return text
  })
  return [...names]
}

export interface SecretFile {
  readonly path: string
  readonly secret: string
}

/** Assigns a file in `folder` to each secret. References use `spelt` as the folder's path. Does not write any files. */
export function fileSecretStore(folder: string, spelt: string) {
  const taken = new Map<string, string>()
  /** Files to write. Existing files that already contain the secret are not listed. */
  const files: SecretFile[] = []
  const keep: StoreSecret = async (secret, server, key) => {
    const stem = `${server}.${key}`.replace(/[^\w.-]+/g, '-').slice(0, 120)
    for (let number = 1; ; number++) {
      const name = number === 1 ? stem : `${stem}-${number}`
      const known = taken.get(name) ?? (await present(join(folder, name)))
      if (known !== undefined && known !== secret) continue
      if (known === undefined) files.push({ path: join(folder, name), secret })
      taken.set(name, secret)
      return `\${file:${spelt}/${name}}`
    }
  }
  return { keep, files }
}

async function present(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw thrown
  }
}

/** Assigns a variable to each secret. The user must set the variable; the secret itself is not stored. */
export function variableSecretStore() {
  const taken = new Map<string, string>()
  const keep: StoreSecret = async (secret, server, key) => {
    for (const name of namesFor(server, key)) {
      if ((taken.get(name) ?? secret) !== secret) continue
      taken.set(name, secret)
      return `\${${name}}`
    }
    throw new Error('no free name was found')
  }
  return { keep }
}

/** Candidate variable names: specific keys such as API_TOKEN as they are, others with the server name as a prefix. */
function* namesFor(server: string, key: string): Iterable<string> {
  if (/^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(key)) yield key
  const long = variableName(`${server}_${key}`)
  yield long
  for (let number = 2; ; number++) yield `${long}_${number}`
}

const variableName = (text: string): string =>
  text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^(\d)/, '_$1')

/** Writes secret files that only the owner can read. Never overwrites an existing file. */
export async function writeSecrets(files: readonly SecretFile[]): Promise<void> {
  for (const { path, secret } of files) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  }
}
