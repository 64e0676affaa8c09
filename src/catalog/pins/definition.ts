import { createHash } from 'node:crypto'
import { diff } from 'node:util'
import { pageOf } from '../../core/apps.ts'
import type { Definition } from '../../core/entry.ts'
import { canonical } from '../../json/canonical-json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { type ScanFinding, visible } from '../scan/finding.ts'
import { isFlag, scannerVersion } from '../scan/scan.ts'
import { defineMember } from '../snapshot.ts'
import type { DefinitionSnapshot } from './pin-record.ts'

type Copy = Readonly<Record<string, unknown>> | undefined

/** The names of the fields that differ; `definition` if a copy is missing or no field differs. */
export function changedFields(before: Copy, after: Copy): string[] {
  if (!before || !after) return ['definition']
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = fields.filter((field) => definitionText(before[field]) !== definitionText(after[field]))
  return changed.length > 0 ? changed : ['definition']
}

/** A summary of the changed fields: for each, only the part that differs, with invisible characters escaped. */
export function summarizeChanges(before: Copy, after: Copy): string {
  if (!before || !after) return ''
  const parts = changedFields(before, after).map((field) => {
    const [was, is] = differing(fieldText(before[field]), fieldText(after[field]))
    return `${field}: ${was === '' ? 'added' : `“${was}” →`} “${is}”`
  })
  return parts.slice(0, maxSummaryParts).join('; ')
}

const maxSummaryParts = 4
const maxSummary = 120
const context = 16

const fieldText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : definitionText(value)

/** How many elements two texts or lists of lines have in common at their start, and at the end of the rest. */
export function sharedEnds(
  a: ArrayLike<string>,
  b: ArrayLike<string>,
): { readonly start: number; readonly end: number } {
  const most = Math.min(a.length, b.length)
  let start = 0
  while (start < most && a[start] === b[start]) start++
  let end = 0
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  return { start, end }
}

/** The parts in which two strings differ, with a few characters of the common prefix and suffix as context. */
function differing(a: string, b: string): [string, string] {
  const { start, end } = sharedEnds(a, b)
  const from = Math.max(0, start - context)
  const part = (text: string) => {
    if (text === '') return ''
    const shown = visible(text.slice(from, text.length - Math.max(0, end - context)).toWellFormed())
    const cut = shown.length > maxSummary
    const ends = cut || end > context
    return `${from > 0 ? '…' : ''}${shown.slice(0, maxSummary)}${ends ? '…' : ''}`
  }
  return [part(a), part(b)]
}

/** A line of a definition, and the path of the value in it, as in a scanner finding. */
export interface DefinitionLine {
  readonly text: string
  readonly where: string
}

/** A definition as readable lines: strings unchanged, all other values as JSON. Invisible characters are escaped. */
export const linesOf = (definition: Copy): string[] => placedLines(definition).map(({ text }) => text)

export function placedLines(definition: Copy): DefinitionLine[] {
  if (!definition) return [{ text: '(no copy was kept)', where: '' }]
  return Object.keys(definition)
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .flatMap((field) => {
      const value = definition[field]
      const lines =
        typeof value === 'string'
          ? value.split('\n').map((text) => ({ text, where: field }))
          : jsonLines(value === undefined ? null : jsonValue(definitionText(value)), field)
      const shown = lines.map(({ text, where }) => ({ text: visible(text, 'lines'), where }))
      const name = visible(field)
      return shown.length === 1
        ? [{ text: `${name}: ${shown[0]?.text}`, where: field }]
        : [{ text: `${name}:`, where: '' }, ...shown.map(({ text, where }) => ({ text: `  ${text}`, where }))]
    })
}

/** The lines of `JSON.stringify(value, undefined, 2)`, each with the path of the value in it. */
function jsonLines(value: unknown, where: string, prefix = '', indent = ''): DefinitionLine[] {
  const isList = Array.isArray(value)
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0)
    return [{ text: `${indent}${prefix}${JSON.stringify(value)}`, where }]
  const members = Object.entries(value).map(([key, item]) =>
    isList
      ? jsonLines(item, `${where}[${key}]`, '', `${indent}  `)
      : jsonLines(item, `${where}.${key}`, `${JSON.stringify(key)}: `, `${indent}  `),
  )
  const last = members.length - 1
  const inner = members.flatMap((lines, index) =>
    lines.map((line, at) => (index < last && at === lines.length - 1 ? { ...line, text: `${line.text},` } : line)),
  )
  const [open, close] = isList ? '[]' : '{}'
  return [{ text: `${indent}${prefix}${open}`, where }, ...inner, { text: `${indent}${close}`, where: '' }]
}

const fieldOrder = ['name', 'title', 'description', 'instructions', 'annotations', 'inputSchema', 'outputSchema']
const rank = (field: string): number => (fieldOrder.includes(field) ? fieldOrder.indexOf(field) : fieldOrder.length)

export type MarkedLine = readonly [mark: ' ' | '-' | '+', text: string]

/** Max number of lines to compare. If there are more, all of them count as replaced. */
const maxComparedLines = 2_000

export function lineDiff(before: readonly string[], after: readonly string[]): MarkedLine[] {
  const { start, end } = sharedEnds(before, after)
  const old = before.slice(start, before.length - end)
  const fresh = after.slice(start, after.length - end)
  const marked = (mark: MarkedLine[0], lines: readonly string[]) => lines.map((line): MarkedLine => [mark, line])
  const isReplaced = old.length === 0 || fresh.length === 0 || old.length + fresh.length > maxComparedLines
  const middle = isReplaced
    ? [...marked('-', old), ...marked('+', fresh)]
    : diff(old, fresh).map(([of, line]): MarkedLine => [of === 0 ? ' ' : of > 0 ? '-' : '+', line])
  return [...marked(' ', before.slice(0, start)), ...middle, ...marked(' ', before.slice(before.length - end))]
}

export type ShownLine = MarkedLine | readonly ['…', '']

const contextLines = 3

/** The lines that differ, with a few lines around them; `…` stands for omitted equal lines. */
export function diffOf(before: string, after: string): ShownLine[] {
  const lines = lineDiff(textLines(before), textLines(after))
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - contextLines), index + contextLines + 1).some(([mark]) => mark !== ' '),
  )
  return lines.flatMap((line, index): ShownLine[] => {
    if (near[index]) return [line]
    return near[index - 1] || index === 0 ? [['…', '']] : []
  })
}

const textLines = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))

export interface PinnedDefinition {
  readonly hash: string
  readonly part: Definition
}

export const pinnedDefinitionOf = (definition: Definition): PinnedDefinition => {
  const part = pinnedPart(definition)
  return { hash: definitionHash(part), part }
}

export type ScanVerdict = Pick<DefinitionSnapshot, 'flags' | 'high' | 'scanner'>

export const verdictOf = (findings: readonly ScanFinding[]): ScanVerdict => ({
  flags: [...new Set(findings.filter(isFlag).map(({ kind }) => kind))],
  high: findings.some(({ severity }) => severity === 'high'),
  scanner: scannerVersion,
})

const noVerdict: ScanVerdict = { flags: [], high: false, scanner: 0 }

export const snapshotOf = ({ hash, part }: PinnedDefinition, at: number): DefinitionSnapshot => ({
  hash,
  at,
  definition: truncatedCopy(part),
  ...noVerdict,
})

export const isScanned = ({ scanner }: ScanVerdict): boolean => scanner === scannerVersion

/** Max characters per field in a pin. Longer fields are stored as a hash, so that servers cannot inflate pins. */
const maxField = 8_192
const maxCopy = 16_384
const maxFields = 64

/** A copy of limited size for people to compare. Long fields are replaced by a hash, so that changes are detected. */
function truncatedCopy(definition: Definition): Definition {
  const copy: Record<string, unknown> = {}
  let room = maxCopy
  for (const [index, [key, value]] of Object.entries(definition).entries()) {
    const text = definitionText(value)
    const keeps = text.length <= Math.min(maxField, room) && index < maxFields && key.length < 200
    if (keeps) room -= text.length
    if (index >= maxFields) continue
    defineMember(copy, key.slice(0, 200), keeps ? value : stub(text))
  }
  return copy
}

const stub = (text: string): string => {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `(${text.length} characters, too long to keep; sha256 ${hash})`
}

/**
 * The part of a definition that is pinned: everything except `_meta`, which models do not read. Servers put volatile
 * values there (times, counters, whether another gateway behind this one is stale), which would cause constant false
 * alarms. The only part of `_meta` that is pinned is `ui`: hosts open its page, and it says who may call the tool.
 */
export function pinnedPart(definition: Definition): Definition {
  if (definition._meta === undefined) return definition
  const { _meta, ...rest } = definition
  const page = pageOf(definition)
  if (page === undefined && !isRecord(_meta.ui)) return rest
  return { ...rest, _meta: { ui: { ...asRecord(_meta.ui), ...(page !== undefined && { resourceUri: page }) } } }
}

/** The canonical JSON of a definition or a part of it, at any depth. A missing field counts as null. */
const definitionText = (part: unknown): string => canonical(part ?? null, { depth: Number.POSITIVE_INFINITY })

/** The hash of a definition. It does not depend on the order of members. */
export const definitionHash = (part: Definition): string =>
  createHash('sha256').update(definitionText(part)).digest('hex')
