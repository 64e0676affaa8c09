import type { Nodes, Parents, PhrasingContent, RootContent, Text } from 'mdast'
import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmStrikethroughFromMarkdown } from 'mdast-util-gfm-strikethrough'
import { gfmTableFromMarkdown } from 'mdast-util-gfm-table'
import { blockQuote, list } from 'micromark-core-commonmark'
import { cjkFriendlyExtension } from 'micromark-extension-cjk-friendly'
import { gfmStrikethrough } from 'micromark-extension-gfm-strikethrough'
import { gfmTable } from 'micromark-extension-gfm-table'
import type { Extension } from 'micromark-util-types'

/**
 * Longer texts, and texts with more marks, are not parsed: each mark may become an element, and the parser looks back
 * over the marks of a paragraph.
 */
const maxLength = 256 * 1024
const maxMarks = 8_000

/** How deep formatting may be nested. What is deeper is text. */
const maxDepth = 24

/** The last column in which a list or quote may begin. Each of them moves what it contains by a column at least. */
const maxColumn = 40

// The constructs themselves are changed, because they refer to themselves for the lines that follow.
for (const construct of [list, blockQuote]) {
  const { tokenize } = construct
  construct.tokenize = function (effects, ok, nok) {
    return this.now().column > maxColumn ? nok : tokenize.call(this, effects, ok, nok)
  }
}

/** HTML, entities, indented code and reference definitions are text: what is in the source is visible. */
const textOnly: Extension = {
  disable: {
    null: ['characterReference', 'codeIndented', 'definition', 'htmlFlow', 'htmlText', 'setextUnderline'],
  },
}

const options: Parameters<typeof fromMarkdown>[1] = {
  extensions: [gfmTable(), gfmStrikethrough({ singleTilde: false }), cjkFriendlyExtension(), textOnly],
  mdastExtensions: [gfmTableFromMarkdown(), gfmStrikethroughFromMarkdown()],
}

const isBounded = (text: string): boolean =>
  text.length <= maxLength && (text.match(/[\n|*_~`[<]|https?:/g)?.length ?? 0) <= maxMarks

/** The address that a link leads to. Undefined if it must not be a link. */
export type LinkTo = (url: string, isImage: boolean) => string | undefined

const safeLink: LinkTo = (url, isImage) => (isSafeUrl(url, isImage) ? url : undefined)

/**
 * Parses Markdown from an untrusted source. Links and images have only addresses from `linkTo`, by default safe ones.
 * Undefined for text that has too much formatting.
 */
export function parseMarkdown(text: string, linkTo: LinkTo = safeLink): readonly RootContent[] | undefined {
  if (!isBounded(text)) return undefined
  try {
    return boundChildren(fromMarkdown(text, options), { source: text, linkTo }, 0)
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined
    throw thrown
  }
}

interface Bounds {
  readonly source: string
  readonly linkTo: LinkTo
}

const boundChildren = <Parent extends Parents>(parent: Parent, bounds: Bounds, depth: number) => {
  const children: Nodes[] = parent.children
  return children.flatMap((node) =>
    node.type === 'text' && parent.type !== 'link' ? withLinks(node, bounds) : boundNode(node, bounds, depth),
  ) as Parent['children']
}

/** The node with safe links and bounded depth. What may not be shown is the text of its source. */
function boundNode(node: Nodes, bounds: Bounds, depth: number): Nodes {
  const isImage = node.type === 'image'
  const linked = isImage || node.type === 'link' ? bounds.linkTo(node.url, isImage) : ''
  if (linked === undefined || ('children' in node && depth >= maxDepth)) return sourceOf(node, bounds)
  const url = linked !== '' && { url: linked }
  const children = 'children' in node && { children: boundChildren(node, bounds, depth + 1) }
  return { ...node, ...url, ...children } as Nodes
}

/** A text with its bare URLs as links. */
function withLinks({ value }: Text, { linkTo }: Bounds): PhrasingContent[] {
  const nodes: PhrasingContent[] = []
  let end = 0
  for (const { 0: found, index } of value.matchAll(/(?<![\p{L}\p{N}])https?:\/\/[^\s<>"`]+/gu)) {
    const shown = withoutPunctuation(found)
    const url = linkTo(shown, false)
    if (url === undefined) continue
    nodes.push(textNode(value.slice(end, index)), { type: 'link', url, children: [textNode(shown)] })
    end = index + shown.length
  }
  return [...nodes, textNode(value.slice(end))].filter((node) => node.type !== 'text' || node.value !== '')
}

/** A URL in prose without the punctuation behind it, and without a parenthesis that was opened before it. */
function withoutPunctuation(url: string): string {
  let excess = url.split(')').length - url.split('(').length
  let end = url.length
  for (; end > 0; end--) {
    const character = url[end - 1] as string
    if (character === ')' && excess > 0) excess--
    else if (!'.,;:!?*_~\'"]|'.includes(character)) break
  }
  return url.slice(0, end)
}

const textNode = (value: string): Text => ({ type: 'text', value })

const sourceOf = ({ position }: Nodes, { source }: Bounds): Text =>
  textNode(source.slice(position?.start.offset, position?.end.offset))

/** Whether a link may lead there: only to web pages and mail addresses, without hidden credentials. */
export function isSafeUrl(href: string, webOnly = false): boolean {
  if (!(webOnly ? /^https?:\/\//i : /^(?:https?:\/\/|mailto:)/i).test(href) || !URL.canParse(href)) return false
  const { protocol, username, password } = new URL(href)
  return ['http:', 'https:', 'mailto:'].includes(protocol) && username === '' && password === ''
}
