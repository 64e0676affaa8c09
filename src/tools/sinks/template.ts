import type { Artifact } from './sink.ts'

const blank = /\{(content|agent|timestamp|date|id|sink|metadata\.([A-Za-z0-9_-]{1,64}))\}/g
const only = new RegExp(`^(?:${blank.source})$`)

/** Fills in all placeholders in one pass, so that placeholders in inserted values are not expanded. */
const fillTemplate = (
  template: string,
  artifact: Artifact,
  form: (value: string) => string = (value) => value,
): string =>
  template.replace(blank, (_, name: string, key?: string) => form(placeholderText(standsFor(artifact, name, key))))

/** Fills in every string in a value. A string that is only a placeholder becomes the inserted value, with its type. */
export function fillAll(value: unknown, artifact: Artifact): unknown {
  if (Array.isArray(value)) return value.map((inner) => fillAll(inner, artifact))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fillAll(inner, artifact)]))
  }
  if (typeof value !== 'string') return value
  const [whole, name, key] = only.exec(value) ?? []
  return whole === undefined ? fillTemplate(value, artifact) : (standsFor(artifact, name as string, key) ?? '')
}

function standsFor(artifact: Artifact, name: string, key: string | undefined): unknown {
  const { content, agent, timestamp, id, sink, metadata } = artifact
  if (key !== undefined) return Object.hasOwn(metadata, key) ? metadata[key] : undefined
  return { content, agent, timestamp, id, sink, date: timestamp.slice(0, 10) }[name]
}

function placeholderText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Max bytes in a file name. Leaves room for a suffix and for encrypted file systems, which lengthen names. */
const maxNameBytes = 180
const maxOfAValue = 100

/**
 * The folder names and the file name for an artifact. Whatever the template or the values contain, no name is empty,
 * leads to another folder, or is a device name on any system.
 */
export function safeNames(template: string, artifact: Artifact): readonly string[] {
  const filled = { ...artifact, timestamp: artifact.timestamp.replace(/[:.]/g, '-') }
  const names = template
    .split('/')
    .filter((part) => part !== '')
    .map((part) => safeName(fillTemplate(part, filled, harmlessText)))
  return names.length === 0 ? ['_'] : names.slice(-maxDeep)
}

const maxDeep = 8

const harmlessText = (value: string): string =>
  value
    .slice(0, maxOfAValue)
    .toWellFormed()
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}\p{M} ._@+=,()-]/gu, '-')
    .replace(/^[. ]+/, '_') || '_'

/**
 * Makes a filled-in name safe. The operator's own characters are trusted, but filling in placeholders may have produced
 * a name that consists of dots, or a device name.
 */
function safeName(text: string): string {
  const plain = text.toWellFormed().replace(/[\p{C}\p{Zl}\p{Zp}/\\]/gu, '-')
  const name = shortenName(plain.replace(/[. ]+$/, ''))
  if (/^\.*$/.test(name)) return '_'
  return /^(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)\s*(?:\.|$)/i.test(name) ? `_${name}` : name
}

function shortenName(name: string): string {
  if (Buffer.byteLength(name) <= maxNameBytes) return name
  const { stem, ending } = splitExtension(name)
  const start = Buffer.from(stem).toString('utf8', 0, maxNameBytes - Buffer.byteLength(ending))
  return start.replace(/\ufffd+$/, '') + ending
}

/** Splits a file name into stem and extension. A name whose only dot is its first character has no extension. */
export function splitExtension(name: string): { readonly stem: string; readonly ending: string } {
  const at = name.lastIndexOf('.')
  if (at <= 0 || name.length - at > 16) return { stem: name, ending: '' }
  return { stem: name.slice(0, at), ending: name.slice(at) }
}
