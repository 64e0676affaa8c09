import type { Artifact } from './sink.ts'

const blank = /\{(content|agent|timestamp|date|id|sink|metadata\.([A-Za-z0-9_-]{1,64}))\}/g
const only = new RegExp(`^(?:${blank.source})$`)

/** Fills the blanks of a template, all in one pass: what is filled in is never read as a template. */
const fill = (template: string, artifact: Artifact, form: (value: string) => string = (value) => value): string =>
  template.replace(blank, (_, name: string, key?: string) => form(textOf(standsFor(artifact, name, key))))

/** The same in every text of a value. A text that is one blank and nothing else becomes what it stands for, as it is. */
export function fillAll(value: unknown, artifact: Artifact): unknown {
  if (Array.isArray(value)) return value.map((inner) => fillAll(inner, artifact))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fillAll(inner, artifact)]))
  }
  if (typeof value !== 'string') return value
  const [whole, name, key] = only.exec(value) ?? []
  return whole === undefined ? fill(value, artifact) : (standsFor(artifact, name as string, key) ?? '')
}

function standsFor(artifact: Artifact, name: string, key: string | undefined): unknown {
  const { content, agent, timestamp, id, sink, metadata } = artifact
  if (key !== undefined) return Object.hasOwn(metadata, key) ? metadata[key] : undefined
  return { content, agent, timestamp, id, sink, date: timestamp.slice(0, 10) }[name]
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Room for a suffix and for the names of encrypted file systems, which get longer. */
const maxBytes = 180
const maxOfAValue = 100

/**
 * The folders and the name of a file, each of them a plain name: whatever a template or a value holds, none of them is
 * empty, means another folder, or is a device of some system.
 */
export function safeNames(template: string, artifact: Artifact): readonly string[] {
  const filled = { ...artifact, timestamp: artifact.timestamp.replace(/[:.]/g, '-') }
  const names = template
    .split('/')
    .filter((part) => part !== '')
    .map((part) => plainName(fill(part, filled, harmless)))
  return names.length === 0 ? ['_'] : names.slice(-maxDeep)
}

const maxDeep = 8

/** A value as part of a name: letters, digits and a few signs; a dot does not begin it. */
const harmless = (value: string): string =>
  value
    .slice(0, maxOfAValue)
    .toWellFormed()
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}\p{M} ._@+=,()-]/gu, '-')
    .replace(/^[. ]+/, '_') || '_'

/** The template's own signs are the operator's; but two dots may have met. */
function plainName(text: string): string {
  const plain = text.toWellFormed().replace(/[\p{C}\p{Zl}\p{Zp}/\\]/gu, '-')
  const name = shortened(plain.replace(/[. ]+$/, ''))
  if (/^\.*$/.test(name)) return '_'
  return /^(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)\s*(?:\.|$)/i.test(name) ? `_${name}` : name
}

/** Cut before its ending, between characters. */
function shortened(name: string): string {
  if (Buffer.byteLength(name) <= maxBytes) return name
  const { stem, ending } = split(name)
  const room = maxBytes - Buffer.byteLength(ending)
  const bytes = Buffer.from(stem)
  return (
    bytes
      .subarray(0, room)
      .toString('utf8')
      .replace(/\ufffd+$/, '') + ending
  )
}

/** A name and its ending, `.md`; a name that begins with its only dot has none. */
export function split(name: string): { readonly stem: string; readonly ending: string } {
  const at = name.lastIndexOf('.')
  if (at <= 0 || name.length - at > 16) return { stem: name, ending: '' }
  return { stem: name.slice(0, at), ending: name.slice(at) }
}
