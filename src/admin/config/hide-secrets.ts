import { createHmac } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { createScanner, parseTree } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { isMap, isScalar, isSeq, type ParsedNode } from 'yaml'
import { redacted } from '../../audit/redact/conceal.ts'
import type { Redactor } from '../../audit/redact/redactor.ts'
import { isCommonplace, secretsInUrl } from '../../audit/redact/secrets.ts'
import { contentOf } from '../../config/edit/edit-text.ts'
import { tomlComments } from '../../config/edit/toml-edit.ts'
import { documentOf } from '../../config/edit/yaml-edit.ts'
import { type Syntax, syntaxOf } from '../../config/parse/document.ts'
import { placeKey, scanToml } from '../../config/parse/toml.ts'
import { secretKindAt } from '../../config/schema-lookup.ts'
import type { Path } from '../../config/tree.ts'
import { secretPlaceholder } from '../../config/validate.ts'
import { invalidArguments } from '../../core/errors.ts'
import { isPath, isSecretName } from '../../core/secret-name.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { findSecrets } from './find-secrets.ts'

interface HiddenSecret {
  /** The secret as it is written in the file. */
  readonly raw: string
  readonly value: unknown
  /** Whether it is a whole value with its quotation marks, not a part of one. */
  readonly whole: boolean
}

interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Replaces the secrets in a configuration file by placeholders such as `<secret 1f3a9c0d>`, so that the file can be
 * edited without being shown its secrets. What is edited may contain the placeholders; they are replaced by the secrets
 * again. A placeholder depends only on the secret and `key`, so it stays valid if other parts of the file change.
 */
export function createSecretHider(redactor: Pick<Redactor, 'text'>, key: string) {
  const secrets = new Map<string, HiddenSecret>()

  const placeholder = (secret: HiddenSecret): string => {
    const id = createHmac('sha256', key).update(`${secret.whole} ${secret.raw}`).digest('hex').slice(0, 8)
    secrets.set(id, secret)
    return `<secret ${id}>`
  }

  /** The parts of a value that must not be shown. */
  const spansIn = (path: Path, value: unknown, found: ReadonlyMap<string, readonly Span[]>): readonly Span[] => {
    const text = String(value)
    if (value === null || typeof value === 'boolean' || text === '' || secretPlaceholder.test(text)) return []
    const whole = [{ start: 0, end: text.length }]
    const kind = secretKindAt(path)
    // The values of variables and headers have user-defined names, so the mark is on the section.
    const section = secretKindAt(path.slice(0, -1))
    const literal = typeof value === 'string' ? literalText(text) : text
    if (literal.trim() === '') return []
    if (kind === true || kind === 'digest') return keywords.has(literal) ? [] : whole
    const own = found.get(JSON.stringify(path))
    if (own) return literal === text && !hasOthers(text, own) ? own : whole
    if (section === 'variables' || section === 'headers') {
      return !isSecretName(String(path.at(-1))) && (isCommonplace(literal) || isPath(literal)) ? [] : whole
    }
    if (kind === 'address' || kind === 'publicAddress') {
      if (literal === text) return /^[^/]*:\/\/[^/]*@|[?#]/.test(text) ? whole : secretsInUrl(text)
      // Passwords and parameters that consist of a reference are empty here.
      const filled = literal.replace(/[?&][^=&#]*=(?=&|$)/g, '')
      return /^[^/]*:\/\/[^/]*[^/:]@|[?#]/.test(filled) || secretsInUrl(filled).length > 0 ? whole : []
    }
    const name = String(path.findLast((part) => typeof part === 'string') ?? '')
    const isNamed =
      typeof path.at(-1) === 'string' && isSecretName(name) && !keywords.has(literal) && kind !== 'section'
    if (isNamed && typeof value === 'string') return whole
    return typeof value === 'string' && redactor.text(literal) !== literal ? whole : []
  }

  /** Whether a text contains secrets besides those that were found in it. */
  const hasOthers = (text: string, found: readonly Span[]): boolean => {
    const rest = found
      .toSorted((a, b) => b.start - a.start)
      .reduce((before, { start, end }) => before.slice(0, start) + redacted + before.slice(end), text)
    return redactor.text(rest) !== rest
  }

  /** The secrets that are found in whole server definitions, by path. */
  const foundIn = (content: unknown): ReadonlyMap<string, readonly Span[]> => {
    const spans = new Map<string, Span[]>()
    for (const [name, definition] of Object.entries(asRecord(asRecord(content).mcpServers))) {
      if (!isRecord(definition)) continue
      for (const { path, start, end } of findSecrets(withLiteralText(definition) as typeof definition, {
        strict: true,
      })) {
        const key = JSON.stringify(['mcpServers', name, ...path])
        spans.set(key, [...(spans.get(key) ?? []), { start, end }])
      }
    }
    return spans
  }

  /** A value as it is written, without its secrets. */
  const hideScalar = (raw: string, value: unknown, spans: readonly Span[]): string => {
    const text = String(value)
    const at = raw.indexOf(text)
    if (at >= 0 && raw.indexOf(text, at + 1) < 0) {
      let shown = raw
      for (const { start, end } of spans.toSorted((a, b) => b.start - a.start)) {
        const secret = text.slice(start, end)
        const mark = placeholder({ raw: secret, value: secret === text ? value : secret, whole: false })
        shown = shown.slice(0, at + start) + mark + shown.slice(at + end)
      }
      return shown
    }
    const end = raw.endsWith('\n') ? '\n' : ''
    return `"${placeholder({ raw: raw.slice(0, raw.length - end.length), value, whole: true })}"${end}`
  }

  const hideComment = (comment: string): string => {
    const [, start = '', text = '', end = ''] = /^((?:#|\/[/*])\s*)(.*?)(\s*\*\/)?$/s.exec(comment) ?? []
    const rest = literalText(text)
    if (text === '' || (redactor.text(rest) === rest && !assignsSecret(rest))) return comment
    return start + placeholder({ raw: text, value: text, whole: false }) + end
  }

  return {
    /** The text of a file without its secrets. Undefined if the file cannot be parsed. */
    hide(file: string, text: string): string | undefined {
      let scalars: readonly WrittenScalar[]
      let found: ReadonlyMap<string, readonly Span[]>
      try {
        scalars = writtenScalars[syntaxOf({ path: file, text })](text).sort((a, b) => a.start - b.start)
        found = foundIn(contentOf(file, text))
      } catch {
        return undefined
      }
      let shown = ''
      let done = 0
      for (const { path, value, start, end } of scalars) {
        const spans = spansIn(path, value, found)
        if (spans.length === 0) continue
        shown += text.slice(done, start) + hideScalar(text.slice(start, end), value, spans)
        done = end
      }
      shown += text.slice(done)
      let result = ''
      done = 0
      for (const { start, end } of commentsIn(file, shown)) {
        result += shown.slice(done, start) + hideComment(shown.slice(start, end))
        done = end
      }
      return result + shown.slice(done)
    },
    /** Plain values without their secrets. */
    hideValues(content: unknown): unknown {
      const found = foundIn(content)
      const walk = (value: unknown, path: Path): unknown => {
        if (Array.isArray(value)) return value.map((item, index) => walk(item, [...path, index]))
        if (isRecord(value)) {
          return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, walk(part, [...path, key])]))
        }
        const spans = spansIn(path, value, found)
        if (spans.length === 0) return value
        return hideScalar(String(value), value, spans)
      }
      return walk(content, [])
    },
    restore: (text: string): string =>
      text.replace(/"<secret ([0-9a-f]{8})>"|<secret ([0-9a-f]{8})>/g, (written, quoted, bare) => {
        const secret = known(quoted ?? bare)
        return secret.whole || quoted === undefined ? secret.raw : written.replace(/<.*>/, () => secret.raw)
      }),
    restoreValues(value: unknown): unknown {
      if (typeof value === 'string') {
        const [, only] = /^<secret ([0-9a-f]{8})>$/.exec(value) ?? []
        if (only !== undefined) return known(only).value
        return value.replace(/<secret ([0-9a-f]{8})>/g, (_, id) => String(known(id).value))
      }
      if (Array.isArray(value)) return value.map((item) => this.restoreValues(item))
      if (!isRecord(value)) return value
      return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, this.restoreValues(part)]))
    },
  }

  function known(id: string): HiddenSecret {
    const secret = secrets.get(id)
    if (secret) return secret
    throw invalidArguments(`There is no <secret ${id}> in the file. Write the value itself, or a reference to it.`)
  }
}

/** Whether a comment contains a setting such as `password: …`, which may have been commented out. */
const assignsSecret = (text: string): boolean =>
  [...text.matchAll(/([\w-]+)["']?\s*[:=]\s*["']?([^\s"',{}]+)/g)].some(
    ([, name = '', value = '']) => isSecretName(name) && !keywords.has(value),
  )

/** Special values of settings for secrets. */
const keywords: ReadonlySet<string> = new Set(['generated', 'none'])

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

function withLiteralText(value: unknown): unknown {
  if (typeof value === 'string') return literalText(value)
  if (Array.isArray(value)) return value.map(withLiteralText)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withLiteralText(part)]))
}

interface WrittenScalar {
  readonly path: Path
  readonly value: unknown
  readonly start: number
  readonly end: number
}

const writtenScalars: Readonly<Record<Syntax, (text: string) => WrittenScalar[]>> = {
  yaml: (text) => yamlScalars(documentOf(text).contents, []),
  json: (text) => jsonScalars(parseTree(text), []),
  toml: (text) => tomlScalars(text, scanToml(text), parseToml(text), []),
}

/** The positions of all comments. In YAML, also of what looks like a comment inside a value. */
function commentsIn(file: string, text: string): Span[] {
  const syntax = syntaxOf({ path: file, text })
  if (syntax === 'toml') return tomlComments(text)
  if (syntax === 'yaml') {
    return [...text.matchAll(/(?:^|(?<=\s))(?:#|\/\/)[^\r\n]*/gm)].map(({ 0: { length }, index }) => ({
      start: index,
      end: index + length,
    }))
  }
  const comments: Span[] = []
  const scanner = createScanner(text)
  while (scanner.getPosition() < text.length) {
    scanner.scan()
    const start = scanner.getTokenOffset()
    if (/^\/[/*]/.test(text.slice(start, start + 2))) comments.push({ start, end: scanner.getPosition() })
  }
  return comments
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
  const { value: start = 0, end = 0 } = places.get(placeKey(path)) ?? {}
  if (!isDeepStrictEqual(parseToml(`value = ${text.slice(start, end)}`).value, value)) throw new Error('misplaced')
  return [{ path, value, start, end }]
}
