import { getNodeValue, type Node, type ParseError, parseTree } from 'jsonc-parser'
import type { Path } from '../tree.ts'
import { FileProblem } from './file.ts'
import { type BracketedList, between, indentAt, insertItem, nested, removeItem, startsLine } from './list-items.ts'

interface Style {
  readonly eol: string
  readonly unit: string
}

function jsonRoot(text: string): Node | undefined {
  const faults: ParseError[] = []
  const root = parseTree(text, faults, { allowTrailingComma: true, allowEmptyContent: true })
  if (faults.length > 0) throw new FileProblem('it is not valid JSON', 'Fix it, then try again.')
  if (root && root.type !== 'object') throw new FileProblem('it does not contain an object', 'Fix it, then try again.')
  return root
}

export function jsonContent(text: string): Readonly<Record<string, unknown>> {
  const root = jsonRoot(text)
  // A copy, because the library returns objects without a prototype.
  return root ? structuredClone(getNodeValue(root)) : {}
}

/** Edits JSON with or without comments. Text outside the edited entry does not change. */
export function jsonText(text: string) {
  const root = jsonRoot(text)
  const nodeAt = (path: Path) => path.reduce<Node | undefined>((node, key) => node && childOf(node, key), root)
  const style: Style = {
    eol: text.includes('\r\n') ? '\r\n' : '\n',
    unit: /^([ \t]+)["}]/m.exec(text)?.[1] ?? '  ',
  }

  return {
    /** Sets `value` at `path`, formatted in the file's style. Creates missing sections. */
    set(path: Path, value: unknown): string {
      if (!root) {
        const gap = text === '' || text.endsWith('\n') ? '' : style.eol
        return `${text}${gap}${render(nested(path, value), '', style)}${style.eol}`
      }
      let section = root
      for (const [depth, key] of path.entries()) {
        const found = childOf(section, key)
        const rest = nested(path.slice(depth + 1), value)
        if (!found) return insert(text, section, key, rest, style)
        const last = depth === path.length - 1
        if (last || found.type === 'null') return replaceValue(text, found, rest, style)
        if (found.type !== 'object' && found.type !== 'array') {
          throw new FileProblem(`its ${path.slice(0, depth + 1).join('.')} is not an object`)
        }
        section = found
      }
      return text
    },
    remove(path: Path): string {
      const section = nodeAt(path.slice(0, -1))
      const index = section ? indexOf(section, path.at(-1) ?? '') : -1
      return section && index >= 0 ? removeItem(text, listOf(section), index, 'slashes') : text
    },
    /** Inserts an item into a list, before the item that has this index. */
    insert(path: Path, value: unknown): string {
      const list = path.slice(0, -1)
      const found = nodeAt(list)
      const index = Number(path.at(-1))
      if (found?.type !== 'array' || !found.children?.length) return this.set(list, [value])
      if (index >= found.children.length) return this.set(path, value)
      const first = found.children[0] as Node
      const own = startsLine(text, first.offset) ? render(value, indentAt(text, first.offset), style) : spaced(value)
      return insertItem(text, listOf(found), index, own, 'slashes')
    },
    rename(path: Path, name: string): string {
      const section = nodeAt(path.slice(0, -1))
      const entry = section?.type === 'object' ? section.children?.[indexOf(section, path.at(-1) ?? '')] : undefined
      const found = entry?.children?.[0]
      if (!found) throw new FileProblem(`it has no ${path.join('.')}`)
      return text.slice(0, found.offset) + JSON.stringify(name) + text.slice(endOf(found))
    },
  }
}

const indexOf = ({ type, children = [] }: Node, key: string | number): number =>
  type === 'array'
    ? Number(key) < children.length
      ? Number(key)
      : -1
    : children.findIndex((one) => one.children?.[0]?.value === key)

function childOf(section: Node, key: string | number): Node | undefined {
  const found = section.children?.[indexOf(section, key)]
  return section.type === 'array' ? found : found?.children?.[1]
}

const listOf = (section: Node): BracketedList => ({
  start: section.offset,
  end: endOf(section),
  items: (section.children ?? []).map((one) => ({ start: one.offset, end: endOf(one) })),
})

const endOf = ({ offset, length }: Node): number => offset + length

function render(value: unknown, indent: string, { eol, unit }: Style): string {
  return JSON.stringify(value, undefined, unit).replaceAll('\n', eol + indent)
}

function replaceValue(text: string, node: Node, value: unknown, style: Style): string {
  const content = isOneLine(text, node) ? spaced(value) : render(value, indentAt(text, node.offset), style)
  return text.slice(0, node.offset) + content + text.slice(endOf(node))
}

const isOneLine = (text: string, node: Node): boolean => {
  let root = node
  while (root.parent) root = root.parent
  return !text.slice(root.offset, endOf(root)).includes('\n') && (root.children?.length ?? 0) > 0
}

const spaced = (value: unknown): string => JSON.stringify(value, undefined, ' ').replace(/\n\s*/g, ' ')

function insert(text: string, section: Node, key: string | number, value: unknown, style: Style): string {
  const children = section.children ?? []
  const last = children.at(-1)
  const close = endOf(section) - 1
  const name = section.type === 'array' ? '' : `${JSON.stringify(key)}: `
  const from = last ? endOf(last) : section.offset + 1
  const tokens = between(text, from, close, 'slashes')
  const end = tokens.at(-1)?.end ?? from
  const separator = last && !tokens.some(({ kind }) => kind === 'comma') ? ',' : ''
  const at = last ? from : end
  const kept = text.slice(at, end)
  const multiline = text.slice(section.offset, close).includes('\n') || (!last && !isOneLine(text, section))
  if (!multiline) {
    const gap = last ? ' ' : ''
    return `${text.slice(0, at)}${separator}${kept}${gap}${name}${spaced(value)}${text.slice(end)}`
  }
  const outer = indentAt(text, section.offset)
  const first = children[0]
  const inner = first && startsLine(text, first.offset) ? indentAt(text, first.offset) : outer + style.unit
  const closing = text.slice(end, close).includes('\n') ? '' : style.eol + outer
  const entry = `${style.eol}${inner}${name}${render(value, inner, style)}${closing}`
  // Drop the whitespace between empty braces: `closing` already contains the line break.
  const rest = closing === '' ? text.slice(end) : text.slice(close)
  return `${text.slice(0, at)}${separator}${kept}${entry}${rest}`
}
