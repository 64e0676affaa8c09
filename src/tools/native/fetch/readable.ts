import { setImmediate as othersFirst } from 'node:timers/promises'
import {
  ELEMENT_NODE,
  type ElementNode,
  type MdreamOptions,
  NodeEventEnter,
  streamHtmlToMarkdown,
  type TextNode,
} from '@mdream/js'
import { invalidArguments } from '../../../core/errors.ts'

export interface Readable {
  readonly title: string
  /** The text in Markdown: headings, links, lists, quotes, code and tables. */
  readonly text: string
}

/** More than any real page needs. Without this limit, resolving relative links could grow the text without bound. */
const maxPageCharacters = 4_000_000
const maxLink = 1_000
const maxPageTitle = 500
/** Number of characters after which to yield to the event loop. */
const sliceLength = 4_096

/** The readable part of a page. Accepts any input. */
export async function readableText(html: string, address: URL, signal?: AbortSignal): Promise<Readable> {
  const page = createPageHooks(address)
  let text = ''
  try {
    for await (const part of streamHtmlToMarkdown(ReadableStream.from(slicesOf(html, signal)), { hooks: [page] })) {
      text += part
      if (text.length > maxPageCharacters) break
    }
  } catch {
    signal?.throwIfAborted()
    throw invalidArguments('This page cannot be converted to Markdown; set "raw" to read its source.')
  }
  return { title: page.title(), text: text.slice(0, maxPageCharacters).trim() }
}

async function* slicesOf(html: string, signal: AbortSignal | undefined): AsyncGenerator<string> {
  for (let at = 0; at < html.length; at += sliceLength) {
    await othersFirst()
    signal?.throwIfAborted()
    yield html.slice(at, at + sliceLength)
  }
}

type PageHooks = NonNullable<MdreamOptions['hooks']>[number]

/** Makes links absolute, and leaves out what people do not see. */
function createPageHooks(address: URL): PageHooks & { title(): string } {
  let base = address
  let title = ''
  let titleElement: ElementNode | undefined
  const unseen = new WeakSet<ElementNode>()
  /** Elements without Markdown of their own. */
  const flattened = new WeakSet<ElementNode>()
  const isUnseen = (element: ElementNode): boolean => {
    const within = element.parent ? unseen.has(element.parent) : false
    if (within || unreadElements.has(element.name) || isHidden(element.attributes)) unseen.add(element)
    return unseen.has(element)
  }
  return {
    title: () => title.replace(/\s+/g, ' ').trim(),
    excludesOverflowSubtree: isUnseen,
    processAttributes(element) {
      const { name, attributes } = element
      if (name === 'base') base = absoluteLink(attributes.href, base) ?? base
      if (name !== 'a') return
      const target = absoluteLink(attributes.href, base)
      element.attributes = { ...withoutLink(attributes), ...(target && { href: linkTarget(target) }) }
    },
    beforeNodeProcess({ node, type }, state) {
      // The parser expects a table around each row.
      state.tableColumnAlignments ??= []
      if (node.type !== ELEMENT_NODE) {
        const { parent } = node as TextNode
        // Pictures have titles, too; the first title is that of the page.
        if (parent?.name === 'title') titleElement ??= parent
        if (parent && parent === titleElement) title = (title + (node as TextNode).value).slice(0, maxPageTitle)
        return { skip: parent ? unseen.has(parent) : false }
      }
      const element = node as ElementNode
      const isEmptyImage = element.name === 'img' && !altOf(element)
      if (type === NodeEventEnter && (isEmptyImage || isNestedTooDeep(element))) flattened.add(element)
      return { skip: isUnseen(element) || flattened.has(element) }
    },
    onNodeEnter: (element) => (element.name === 'img' ? `[image: ${altOf(element)}]` : undefined),
    onNodeExit(element, { buffer }) {
      // An empty link: the last output is its opening bracket.
      if (element.name !== 'a' || element.attributes.href === undefined || buffer.at(-1) !== '[') return
      buffer.pop()
      element.attributes = withoutLink(element.attributes)
    },
  }
}

/** Encodes the characters that end a link, or the cell of a table. */
const linkTarget = ({ href }: URL) =>
  href.replace(/[()|]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

const withoutLink = ({ href: _, title: __, ...others }: ElementNode['attributes']) => others

const altOf = ({ attributes }: ElementNode): string => (attributes.alt ?? '').replace(/\s+/g, ' ').trim().slice(0, 300)

/** Elements that only a browser can show or a person can use, and the title, which is returned separately. */
const unreadElements: ReadonlySet<string> = new Set([
  ...['title', 'script', 'style', 'template', 'noscript', 'iframe', 'noframes', 'noembed', 'object', 'svg', 'canvas'],
  ...['video', 'audio', 'select', 'datalist', 'button', 'textarea', 'dialog', 'xmp', 'nav'],
])

/** Whether an element is invisible. A model should not read text that people cannot see. */
function isHidden({ hidden, style = '', 'aria-hidden': aria }: ElementNode['attributes']): boolean {
  if (hidden !== undefined || aria?.toLowerCase() === 'true') return true
  return /(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$|!)|font-size\s*:\s*0)/i.test(
    style.slice(0, 2000),
  )
}

/** The maximum nesting of the elements whose Markdown grows with each level; deeper ones are text. */
const maxElementNesting: Readonly<Record<string, number>> = { blockquote: 8, code: 1, pre: 1 }

function isNestedTooDeep({ name, tagId, depthMap }: ElementNode): boolean {
  const max = maxElementNesting[name]
  return max !== undefined && tagId !== undefined && (depthMap[tagId] ?? 0) > max
}

/** The target of a link, unless it cannot be fetched, or is on the same page and useless in the extracted text. */
function absoluteLink(href = '', base: URL): URL | undefined {
  const written = href.trim()
  if (written === '' || written.startsWith('#') || written.length > maxLink) return undefined
  const target = URL.parse(written, base.href)
  return target && /^(?:https?|mailto):$/.test(target.protocol) && target.href.length <= maxLink ? target : undefined
}
