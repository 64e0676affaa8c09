import { createHmac } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { parseTree } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { isMap, isScalar, isSeq, type ParsedNode } from 'yaml'
import { redacted } from '../../audit/redact/conceal.ts'
import type { Redactor } from '../../audit/redact/redactor.ts'
import { isCommonplace, secretsInUrl } from '../../audit/redact/secrets.ts'
import { contentOf } from '../../config/edit/edit-text.ts'
import { documentOf } from '../../config/edit/yaml-edit.ts'
import { type Syntax, syntaxOf } from '../../config/parse/document.ts'
import { scanToml, tomlToken } from '../../config/parse/toml.ts'
import { secretKindAt } from '../../config/schema-lookup.ts'
import type { Path } from '../../config/tree.ts'
import { secretPlaceholder } from '../../config/validate.ts'
import { invalidArguments } from '../../core/errors.ts'
import { isPath, isSecretName } from '../../core/secret-name.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { type ReplacedSpan, replaceSpans } from '../../lib/replace-spans.ts'
import { findSecrets } from './find-secrets.ts'

/**
 * Replaces secrets by placeholders such as `<secret 1f3a9c0d>`: in values, so that a form can change what is beside
 * them, and in texts that are shown as a difference. A placeholder depends only on the secret and `key`.
 */
export class SecretMask {
  readonly #redactor: Pick<Redactor, 'text'>
  readonly #key: string
  readonly #secrets = new Map<string, unknown>()

  constructor(redactor: Pick<Redactor, 'text'>, key: string) {
    this.#redactor = redactor
    this.#key = key
  }

  maskValues(content: unknown): unknown {
    const found = secretsInServers(content)
    return mapScalars(content, (value, path) => {
      const spans = this.#secretsIn(path, value, found)
      const [first] = spans
      if (!first) return value
      const text = String(value)
      if (first.end - first.start === text.length) return this.#placeholder(value)
      return replaceSpans(text, spans, (secret) => this.#placeholder(secret))
    })
  }

  /** The values with the secrets that their placeholders stand for. */
  restoreValues(value: unknown): unknown {
    return mapScalars(value, (part) => {
      if (typeof part !== 'string') return part
      const [, only] = /^<secret ([0-9a-f]{8})>$/.exec(part) ?? []
      if (only !== undefined) return this.#secretOf(only)
      return part.replace(/<secret ([0-9a-f]{8})>/g, (_, id) => String(this.#secretOf(id)))
    })
  }

  /** The text of a file without its secrets. Undefined if the file cannot be parsed. */
  maskText(file: string, text: string): string | undefined {
    const syntax = syntaxOf({ path: file, text })
    try {
      const found = secretsInServers(contentOf(file, text))
      const secrets = scalarsOf[syntax](text).flatMap((scalar) => {
        const spans = this.#secretsIn(scalar.path, scalar.value, found)
        return spans.length === 0 ? [] : [{ ...scalar, spans }]
      })
      const masked = replaceSpans(text, secrets, (written, { value, spans }) =>
        this.#maskWritten(written, String(value), spans),
      )
      return masked.replace(commentPatterns[syntax], (token) =>
        commentStart.test(token) ? this.#maskComment(token) : token,
      )
    } catch {
      return undefined
    }
  }

  #placeholder(secret: unknown): string {
    const id = createHmac('sha256', this.#key).update(JSON.stringify(secret)).digest('hex').slice(0, 8)
    this.#secrets.set(id, secret)
    return `<secret ${id}>`
  }

  #secretOf(id: string): unknown {
    if (this.#secrets.has(id)) return this.#secrets.get(id)
    throw invalidArguments(`There is no <secret ${id}> in the file. Write the value itself, or a reference to it.`)
  }

  /** A value as it is written in a file, without its secrets; nothing of it if they cannot be located. */
  #maskWritten(written: string, value: string, spans: readonly ReplacedSpan[]): string {
    const at = written.indexOf(value)
    if (at < 0 || written.includes(value, at + 1)) {
      return `"${this.#placeholder(value)}"${written.endsWith('\n') ? '\n' : ''}`
    }
    const masked = replaceSpans(value, spans, (secret) => this.#placeholder(secret))
    return written.slice(0, at) + masked + written.slice(at + value.length)
  }

  #maskComment(comment: string): string {
    const [, start = '', text = '', end = ''] = /^((?:#|\/[/*])\s*)(.*?)(\s*\*\/)?$/s.exec(comment) ?? []
    const rest = literalText(text)
    if (text === '' || !(this.#isRedacted(rest) || assignsSecret(rest))) return comment
    return start + this.#placeholder(text) + end
  }

  #isRedacted(text: string): boolean {
    return this.#redactor.text(text) !== text
  }

  /** The parts of a value that must not be shown. `found` has those that were found in whole servers. */
  #secretsIn(path: Path, value: unknown, found: ReadonlyMap<string, readonly ReplacedSpan[]>): readonly ReplacedSpan[] {
    const text = String(value)
    if (value === null || typeof value === 'boolean' || text === '' || secretPlaceholder.test(text)) return []
    const literal = typeof value === 'string' ? literalText(text) : text
    if (literal.trim() === '') return []
    const own = found.get(JSON.stringify(path))
    const whole = [{ start: 0, end: text.length }]
    if (own && !hasSecretKind(path)) {
      const isAll = literal === text && !this.#isRedacted(replaceSpans(text, own, () => redacted))
      return isAll ? own : whole
    }
    const parts = secretsInSetting(path, value, literal)
    if (parts !== undefined) return parts
    return typeof value === 'string' && this.#isRedacted(literal) ? whole : []
  }
}

const hasSecretKind = (path: Path): boolean => {
  const kind = secretKindAt(path)
  return kind === true || kind === 'digest'
}

/** The secrets in a value that follow from its setting; undefined if nothing follows. */
function secretsInSetting(path: Path, value: unknown, literal: string): readonly ReplacedSpan[] | undefined {
  const text = String(value)
  const whole = [{ start: 0, end: text.length }]
  const kind = secretKindAt(path)
  if (hasSecretKind(path)) return secretKeywords.has(literal) ? [] : whole
  // The values of variables and headers have user-defined names, so the mark is on the section.
  const section = secretKindAt(path.slice(0, -1))
  if (section === 'variables' || section === 'headers') {
    return !isSecretName(String(path.at(-1))) && (isCommonplace(literal) || isPath(literal)) ? [] : whole
  }
  if (kind === 'address' || kind === 'publicAddress') {
    if (literal === text) return /^[^/]*:\/\/[^/]*@|[?#]/.test(text) ? whole : secretsInUrl(text)
    // Passwords and parameters that consist of a reference are empty here.
    const filled = literal.replace(/[?&][^=&#]*=(?=&|$)/g, '')
    return /^[^/]*:\/\/[^/]*[^/:]@|[?#]/.test(filled) || secretsInUrl(filled).length > 0 ? whole : []
  }
  const name = path.at(-1)
  const isNamed = typeof name === 'string' && isSecretName(name) && !secretKeywords.has(literal) && kind !== 'section'
  return isNamed && typeof value === 'string' ? whole : undefined
}

/** The secrets that are found in whole server definitions, by path. */
function secretsInServers(content: unknown): ReadonlyMap<string, readonly ReplacedSpan[]> {
  const spans = new Map<string, ReplacedSpan[]>()
  for (const [name, definition] of Object.entries(asRecord(asRecord(content).mcpServers))) {
    const literal = mapScalars(definition, (value) => (typeof value === 'string' ? literalText(value) : value))
    if (!isRecord(literal)) continue
    for (const { path, start, end } of findSecrets(literal, { strict: true })) {
      const key = JSON.stringify(['mcpServers', name, ...path])
      spans.set(key, [...(spans.get(key) ?? []), { start, end }])
    }
  }
  return spans
}

function mapScalars(value: unknown, change: (value: unknown, path: Path) => unknown, path: Path = []): unknown {
  if (Array.isArray(value)) return value.map((item, index) => mapScalars(item, change, [...path, index]))
  if (!isRecord(value)) return change(value, path)
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, mapScalars(part, change, [...path, key])]))
}

/** Whether a comment contains a setting such as `password: …`, which may have been commented out. */
const assignsSecret = (text: string): boolean =>
  [...text.matchAll(/([\w-]+)["']?\s*[:=]\s*["']?([^\s"',{}]+)/g)].some(
    ([, name = '', value = '']) => isSecretName(name) && !secretKeywords.has(value),
  )

/** Special values of settings for secrets. */
const secretKeywords: ReadonlySet<string> = new Set(['generated', 'none'])

/** A reference with the scheme before it. `$${` is not a reference. */
const references = /(?:\b(?:bearer|basic|token|apikey|digest)\s+)?(?<!\$)\$\{([^}]*)\}/gi

/** The contents of references that have no default. */
const withoutDefault = /^(?:(?:env:)?[a-z_]\w*|(?:file|exec|input):.*)$/is

/** The text that is written in the file itself: without references, but with their defaults. */
const literalText = (text: string): string =>
  text.replace(references, (_, body: string) => {
    const at = body.indexOf(':-')
    if (at >= 0) return body.slice(at + 2)
    return withoutDefault.test(body) ? '' : body
  })

/** Matches comments, and strings if they can contain what looks like a comment. In YAML, also such parts of values. */
const commentPatterns: Readonly<Record<Syntax, RegExp>> = {
  yaml: /(?:^|(?<=\s))(?:#|\/\/)[^\r\n]*/gm,
  json: /"(?:\\.|[^"\\])*"|\/\/[^\r\n]*|\/\*.*?\*\//gs,
  toml: tomlToken,
}
const commentStart = /^(?:#|\/[/*])/

interface WrittenScalar extends ReplacedSpan {
  readonly path: Path
  readonly value: unknown
}

const scalarsOf: Readonly<Record<Syntax, (text: string) => WrittenScalar[]>> = {
  yaml: (text) => yamlScalars(documentOf(text).contents, []),
  json: (text) => jsonScalars(parseTree(text), []),
  toml: (text) => tomlScalars(text, scanToml(text), parseToml(text), []),
}

function yamlScalars(node: ParsedNode | null, path: Path): WrittenScalar[] {
  if (isMap(node)) {
    return node.items.flatMap(({ key, value }) =>
      yamlScalars(value, [...path, isScalar(key) ? String(key.value) : String(key)]),
    )
  }
  if (isSeq(node)) return node.items.flatMap((item, index) => yamlScalars(item as ParsedNode, [...path, index]))
  return isScalar(node) ? [{ path, value: node.value, start: node.range[0], end: node.range[1] }] : []
}

function jsonScalars(node: ReturnType<typeof parseTree>, path: Path): WrittenScalar[] {
  if (!node) return []
  const { type, children = [], offset, length } = node
  if (type === 'array') return children.flatMap((item, index) => jsonScalars(item, [...path, index]))
  if (type !== 'object') return [{ path, value: node.value, start: offset, end: offset + length }]
  return children.flatMap(({ children: [key, value] = [] }) => jsonScalars(value, [...path, String(key?.value)]))
}

/** Throws if a value is not where it is expected, because it could not be hidden then. */
function tomlScalars(text: string, places: ReturnType<typeof scanToml>, value: unknown, path: Path): WrittenScalar[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => tomlScalars(text, places, item, [...path, index]))
  if (isRecord(value) && !(value instanceof Date)) {
    return Object.entries(value).flatMap(([key, part]) => tomlScalars(text, places, part, [...path, key]))
  }
  const { start = 0, end = 0 } = places.placeOf(path) ?? {}
  if (!isDeepStrictEqual(parseToml(`value = ${text.slice(start, end)}`).value, value)) throw new Error('misplaced')
  return [{ path, value, start, end }]
}
