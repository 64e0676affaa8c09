import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ServerDefinition } from '../config/import/read-servers.ts'
import type { Path } from '../config/tree.ts'

/** A stretch of a text inside a definition that must not be copied. */
export interface SecretSpan {
  readonly path: Path
  readonly start: number
  readonly end: number
  /** The name under which it stood: a variable, a header, an option. */
  readonly key: string
}

/** Finds the secrets of a server. Handed in: what secrets look like is known where they are kept out of logs. */
export type FindSecrets = (definition: ServerDefinition) => readonly SecretSpan[]

/** Puts a secret somewhere and says how to refer to it. */
export type StoreSecret = (secret: string, server: string, key: string) => Promise<string>

/** What is shorter may stand in other texts by chance. */
const unmistakable = 8

/** The same server with a reference in the place of each secret, wherever else it may stand in it, too. */
export async function withoutSecrets(
  server: string,
  definition: ServerDefinition,
  find: FindSecrets,
  keep: StoreSecret,
): Promise<{ readonly definition: ServerDefinition; readonly moved: number }> {
  const references = new Map<string, string>()
  const spans = new Map<string, SecretSpan[]>()
  for (const secret of find(definition)) {
    const place = JSON.stringify(secret.path)
    const text = textAt(definition, secret)
    spans.set(place, [...(spans.get(place) ?? []), secret])
    if (!references.has(text))
      references.set(
        text,
        await keep(
          text.replaceAll('$${', () => '${'),
          server,
          secret.key,
        ),
      )
  }
  // A secret may be part of a longer one.
  const wanted = [...references].filter(([text]) => text.length >= unmistakable).sort(([a], [b]) => b.length - a.length)
  const elsewhere = (text: string): string => {
    for (const [secret, reference] of wanted) {
      const at = text.indexOf(secret)
      if (at >= 0) return elsewhere(text.slice(0, at)) + reference + elsewhere(text.slice(at + secret.length))
    }
    return text
  }
  const replaced = (text: string, path: Path): string => {
    let result = ''
    let done = 0
    for (const { start, end } of (spans.get(JSON.stringify(path)) ?? []).toSorted((a, b) => a.start - b.start)) {
      result += elsewhere(text.slice(done, start)) + references.get(text.slice(start, end))
      done = end
    }
    return result + elsewhere(text.slice(done))
  }
  return { definition: mapTexts(definition, replaced) as ServerDefinition, moved: references.size }
}

/** The stretch itself. */
export function textAt(definition: ServerDefinition, { path, start, end }: SecretSpan): string {
  const found = path.reduce<unknown>((part, key) => (part as Record<string | number, unknown>)[key], definition)
  return String(found).slice(start, end)
}

/** The same value with each of its texts changed; names stay. */
function mapTexts(value: unknown, change: (text: string, path: Path) => string, path: Path = []): unknown {
  if (typeof value === 'string') return change(value, path)
  if (Array.isArray(value)) return value.map((item, index) => mapTexts(item, change, [...path, index]))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, mapTexts(part, change, [...path, key])]))
}

/** The variables that somebody must set before a definition can be used. */
export const variablesIn = (value: unknown): string[] => namesIn(value, /(?<!\$)\$\{(?:env:)?([A-Za-z_]\w*)\}/g)

/** The files from which a definition takes secrets. */
export const filesIn = (value: unknown): string[] => namesIn(value, /(?<!\$)\$\{file:([^}]+)\}/g)

function namesIn(value: unknown, pattern: RegExp): string[] {
  const names = new Set<string>()
  mapTexts(value, (text) => {
    for (const [, name = ''] of text.matchAll(pattern)) names.add(name)
    return text
  })
  return [...names]
}

/** A secret that is to be written into a file of its own. */
interface SecretFile {
  readonly path: string
  readonly secret: string
}

interface FileKeeper {
  readonly keep: StoreSecret
  /** What has to be written for the references to hold; a file that has the secret already is not among them. */
  readonly files: readonly SecretFile[]
}

/** Each secret in a file of its own in `folder`, which references spell as `spelt`. Nothing is written yet. */
export function fileSecretStore(folder: string, spelt: string): FileKeeper {
  const taken = new Map<string, string>()
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

/** Each secret in a variable that somebody else sets: nothing is copied at all. */
export function variableSecretStore(): { readonly keep: StoreSecret } {
  const taken = new Map<string, string>()
  const keep: StoreSecret = async (secret, server, key) => {
    for (const name of namesFor(server, key)) {
      const known = taken.get(name)
      if (known !== undefined && known !== secret) continue
      taken.set(name, secret)
      return `\${${name}}`
    }
    throw new Error('there is always another name')
  }
  return { keep }
}

/** A variable's own name says enough; anything else is too common to go without the server's. */
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

/** Writes each secret into its file, which nobody but its owner can read; a file that is there is never touched. */
export async function writeSecrets(files: readonly SecretFile[]): Promise<void> {
  for (const { path, secret } of files) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  }
}
