import { setImmediate as othersFirst } from 'node:timers/promises'
import { blocks, createOpenElements, isHidden, paragraphs, unread } from './elements.ts'
import { decodeEntities, tokensOf } from './tokens.ts'
import { createWriter, type Writer } from './writer.ts'

export interface Readable {
  readonly title: string
  /** The text in approximate Markdown: headings, links, lists, quotes, code and tables. */
  readonly text: string
}

/** More than any real page needs. Without this limit, resolving relative links could grow the text without bound. */
const maxCharacters = 4_000_000
const maxLink = 1_000
/** Number of tokens after which to yield to the event loop: a page of 1 MB takes 250 ms in total. */
const tokensAtOnce = 500

/** The readable part of a page. Accepts any input and runs in linear time. */
export async function readableText(html: string, address: URL, signal?: AbortSignal): Promise<Readable> {
  const writer = createWriter(maxCharacters)
  const open = createOpenElements()
  const lists: { ordered: boolean; count: number }[] = []
  /** The open row of a table. A table inside a cell has no rows: its text is part of the cell. */
  let row: { count: number } | undefined
  /** Whether the open table has a line below its first row, as Markdown requires. */
  let hasHead = false
  let base = address
  let title = ''
  let inTitle = false
  let inLink = false
  /** Nesting depth of skipped elements, and of elements that preserve whitespace. */
  let skipped = 0
  let verbatim = 0

  const begin = (name: string, attributes: ReadonlyMap<string, string>): (() => void) | undefined => {
    if (name === 'title')
      return set(
        () => (inTitle = true),
        () => (inTitle = false),
      )
    if (name === 'base') base = absolute(attributes.get('href'), base) ?? base
    if (skipped > 0 || unread.has(name) || isHidden(attributes))
      return set(
        () => skipped++,
        () => skipped--,
      )
    if (name === 'br') writer.line()
    if (name === 'img') writer.text(imageText(attributes))
    const apart = paragraphs.has(name)
    const isBlock = apart || blocks.has(name)
    if (isBlock) writer.line(apart && !(lists.length > 0 && (name === 'ul' || name === 'ol')))
    const end = shape(name, attributes)
    if (!isBlock) return end
    return () => {
      end?.()
      writer.line(apart && !(lists.length > 0 && (name === 'ul' || name === 'ol')))
    }
  }

  const shape = (name: string, attributes: ReadonlyMap<string, string>): (() => void) | undefined => {
    if (/^h[1-6]$/.test(name)) writer.text(`${'#'.repeat(Number(name[1]))} `)
    switch (name) {
      case 'hr':
        writer.text('---')
        return undefined
      case 'a':
        return anchor(absolute(attributes.get('href'), base))
      case 'ul':
      case 'ol':
        return set(
          () => lists.push({ ordered: name === 'ol', count: 0 }),
          () => lists.pop(),
        )
      case 'li':
        return item()
      case 'blockquote':
        return indented('> ')
      case 'pre':
        writer.text('```')
        writer.line()
        verbatim++
        return () => {
          verbatim--
          writer.line()
          writer.text('```')
        }
      case 'table':
        if (!row) hasHead = false
        return undefined
      case 'tr':
        return row ? undefined : tableRow()
      case 'td':
      case 'th':
        return tableCell()
      default:
        return undefined
    }
  }

  /** Begins a link. A nested link becomes plain text; otherwise, each link around it would process its text again. */
  const anchor = (target: URL | undefined): (() => void) | undefined => {
    const end = inLink ? undefined : link(writer, target)
    if (!end) return undefined
    inLink = true
    return () => {
      inLink = false
      end()
    }
  }

  const tableRow = (): (() => void) => {
    const from = writer.mark()
    const own = { count: 0 }
    row = own
    return () => {
      row = undefined
      if (own.count > 1) writer.text(' |')
      let isEmpty = false
      writer.replace(from, (text) => {
        isEmpty = /^[\s>|]*$/.test(text)
        if (isEmpty) return ''
        // The only cell of a row is plain text: it is part of the layout, or a title.
        return own.count > 1 ? text : text.replace(/^([\s>]*)\| /, '$1')
      })
      // The line break before the row was removed with it.
      if (isEmpty) writer.line(!hasHead)
      if (isEmpty || own.count < 2 || hasHead) return
      hasHead = true
      writer.line()
      writer.text(`|${' --- |'.repeat(own.count)}`)
    }
  }

  const tableCell = (): (() => void) => {
    if (row && !writer.inCell) {
      row.count++
      writer.text(' | ')
    }
    writer.cell(true)
    return () => {
      writer.cell(false)
      writer.text(' ')
    }
  }

  const item = (): (() => void) => {
    const list = lists.at(-1)
    const sign = list?.ordered ? `${++list.count}. ` : '- '
    writer.text(sign)
    return indented(' '.repeat(sign.length))
  }

  const indented = (mark: string) =>
    set(
      () => writer.indent(mark),
      () => writer.outdent(),
    )

  let count = 0
  for (const token of tokensOf(html)) {
    if (writer.full) break
    if (++count % tokensAtOnce === 0) {
      await othersFirst()
      signal?.throwIfAborted()
    }
    if (token.kind === 'close') open.close(token.name)
    else if (token.kind === 'open') {
      open.before(token.name)
      const end = begin(token.name, token.attributes)
      open.push({ name: token.name, end })
    } else if (inTitle) title ||= decodeEntities(token.text).replace(/\s+/g, ' ').trim().slice(0, 500)
    else if (skipped === 0) writer.text(decodeEntities(token.text), verbatim > 0)
  }
  open.closeAll()
  return {
    title,
    text: writer
      .toString()
      // The lookbehind keeps the time linear: without it, each position in a run of spaces would be tried as a start.
      .replace(/(?<![ \t])[ \t]+$/gm, '')
      .trim(),
  }
}

function set(now: () => unknown, later: () => unknown): () => void {
  now()
  return () => void later()
}

/** Characters that would end a link, or the cell of a table. */
const escapes: Readonly<Record<string, string>> = { '(': '%28', ')': '%29', '|': '%7C' }

/** Begins a Markdown link. Leaves plain text if the URL cannot be fetched or the label is empty. */
function link(writer: Writer, target: URL | undefined): (() => void) | undefined {
  const href = target?.href.replace(/[()|]/g, (sign) => escapes[sign] ?? sign) ?? ''
  if (!/^(?:https?|mailto):/.test(href) || href.length > maxLink) return undefined
  const from = writer.mark()
  return () =>
    writer.replace(from, (text) => {
      const [margin = ''] = /^[\s>]*/.exec(text) ?? []
      const label = text.slice(margin.length).replace(/\s+/g, ' ')
      return label === '' ? text : `${margin}[${label}](${href})`
    })
}

function absolute(href: string | undefined, base: URL): URL | undefined {
  const written = decodeEntities(href ?? '').trim()
  // Links within the same page are useless in the extracted text.
  if (written === '' || written.startsWith('#') || written.length > maxLink) return undefined
  return URL.parse(written, base.href) ?? undefined
}

function imageText(attributes: ReadonlyMap<string, string>): string {
  const text = decodeEntities(attributes.get('alt') ?? '')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 300)
  return text === '' ? '' : `[image: ${text}]`
}
