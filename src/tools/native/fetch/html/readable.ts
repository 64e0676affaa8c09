import { setImmediate as othersFirst } from 'node:timers/promises'
import { blocks, createOpenElements, isHidden, paragraphs, unread } from './elements.ts'
import { decodeEntities, tokensOf } from './tokens.ts'
import { createWriter, type Writer } from './writer.ts'

export interface Readable {
  readonly title: string
  /** Markdown, more or less: headings, links, lists, quotes, code; the cells of a table between bars. */
  readonly text: string
}

/** Longer than any page that came whole; relative links could grow it without end otherwise. */
const maxCharacters = 4_000_000
const maxLink = 1_000
/** A megabyte takes a quarter of a second, in which nothing else would happen. */
const tokensAtOnce = 500

/** What a person would read of a page. Takes any text, in time linear to its length, and lets others go first. */
export async function readableText(html: string, address: URL, signal?: AbortSignal): Promise<Readable> {
  const writer = createWriter(maxCharacters)
  const open = createOpenElements()
  const lists: { ordered: boolean; count: number }[] = []
  let base = address
  let title = ''
  let inTitle = false
  let inLink = false
  /** How many elements around this place are not read, or keep their spaces. */
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

  /** The signs around an element; returns what ends it. */
  const shape = (name: string, attributes: ReadonlyMap<string, string>): (() => void) | undefined => {
    switch (name) {
      case 'h1':
      case 'h2':
      case 'h3':
      case 'h4':
      case 'h5':
      case 'h6':
        writer.text(`${'#'.repeat(Number(name[1]))} `)
        return undefined
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
      case 'td':
      case 'th':
        return set(
          () => writer.cell(true),
          () => {
            writer.cell(false)
            writer.text(' | ')
          },
        )
      default:
        return undefined
    }
  }

  /** One in another stays text: the text of each would be gone over again for all that are around it. */
  const anchor = (target: URL | undefined): (() => void) | undefined => {
    const end = inLink ? undefined : link(writer, target)
    if (!end) return undefined
    inLink = true
    return () => {
      inLink = false
      end()
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
      open.push({ name: token.name, ...(end && { end }) })
    } else if (inTitle) title ||= decodeEntities(token.text).replace(/\s+/g, ' ').trim().slice(0, 500)
    else if (skipped === 0) writer.text(decodeEntities(token.text), verbatim > 0)
  }
  open.closeAll()
  return {
    title,
    text: writer
      .toString()
      // Only from where a run begins: a run that does not end its line would be gone over from each place in it.
      .replace(/(?<![ \t|])[ \t|]+$/gm, '')
      .trim(),
  }
}

/** Does something now, and hands back how to undo it. */
function set(now: () => unknown, later: () => unknown): () => void {
  now()
  return () => void later()
}

/** Text between the tags becomes the label; without any, or without an address that can be fetched, it stays text. */
function link(writer: Writer, target: URL | undefined): (() => void) | undefined {
  const href = target?.href.replaceAll('(', '%28').replaceAll(')', '%29') ?? ''
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
  // A place on the same page leads nowhere else.
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
