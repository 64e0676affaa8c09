/** A part of a line of Markdown. Everything that is not formatting stays text, including HTML. */
export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis' | 'strike'; readonly content: readonly Inline[] }
  | {
      readonly kind: 'link' | 'image'
      readonly href: string
      readonly title: string
      readonly content: readonly Inline[]
    }

/**
 * How deep formatting may be nested; deeper markers are text. The parser looks through all open markers, so this also
 * bounds its time per character.
 */
const maxOpen = 16

/** A marker that may begin formatting: `*`, `_` or `~` with its length, `[`, or `![`. */
interface Open {
  readonly marker: string
  /** False for a bracket that has been closed without a destination: it is text. */
  live: boolean
  readonly content: Inline[]
}

const kinds = { '*': 'emphasis', _: 'emphasis', '**': 'strong', __: 'strong', '~~': 'strike' } as const

const escapable = /[!-/:-@[-`{-~]/
const wordCharacter = /[\p{L}\p{N}]/u

/**
 * Parses the inline formatting of a block in linear time: code, emphasis, strong, strike-through, links, images and
 * bare URLs. Links have only addresses that `isLink` accepts, by default safe ones; a link with another one is text.
 */
export function parseInline(
  source: string,
  isLink: (href: string, isImage: boolean) => boolean = isSafeUrl,
): readonly Inline[] {
  const root: Open = { marker: '', live: true, content: [] }
  const open: Open[] = [root]
  const codeEnds = backtickRuns(source)
  let at = 0
  let textFrom = 0

  const top = () => open.at(-1) as Open
  const flush = (): void => {
    addText(top().content, source.slice(textFrom, at))
    textFrom = at
  }
  /** Ends the pending text, adds a node and continues behind it. */
  const add = (node: Inline, end: number): void => {
    flush()
    top().content.push(node)
    at = end
    textFrom = end
  }
  /** Closes the innermost marker as text. */
  const drop = (): void => {
    const { marker, content } = open.pop() as Open
    addText(top().content, marker)
    for (const node of content) append(top().content, node)
  }
  const dropDownTo = (index: number): readonly Inline[] => {
    while (open.length > index + 1) drop()
    return (open.pop() as Open).content
  }

  while (at < source.length) {
    const character = source[at] as string
    if (character === '\\' && escapable.test(source[at + 1] ?? '')) {
      flush()
      textFrom = at + 1
      at += 2
    } else if (character === '`') readCode()
    else if (character === '*' || character === '_' || character === '~') readMarkers(character)
    else if (character === '[') readBracket('[')
    else if (character === '!' && source[at + 1] === '[') readBracket('![')
    else if (character === ']') readBracketEnd()
    else if (character === '<') readAutolink()
    else if (character === 'h' && !isWord(source[at - 1])) readUrl()
    else at++
  }
  flush()
  while (open.length > 1) drop()
  return root.content

  function readCode(): void {
    const length = runLength(source, at)
    const ends = codeEnds.get(length) ?? []
    while (ends.length > 0 && (ends.at(-1) as number) < at + length) ends.pop()
    const end = ends.at(-1)
    if (end === undefined) at += length
    else add({ kind: 'code', text: codeText(source.slice(at + length, end)) }, end + length)
  }

  function readMarkers(character: '*' | '_' | '~'): void {
    const length = runLength(source, at)
    const before = source[at - 1]
    const after = source[at + length]
    const ofWord = character === '_'
    const mayOpen = !isSpace(after) && !(ofWord && isWord(before))
    const mayClose = !isSpace(before) && !(ofWord && isWord(after))
    let rest = length
    if (length > 3 || (character === '~' && length !== 2)) rest = 0
    while (rest > 0 && mayClose) {
      const index = open.findLastIndex(({ marker }) => marker[0] === character && marker.length <= rest)
      if (index < 0) break
      // A marker cannot reach out of a link's text.
      if (open.findLastIndex(isLiveBracket) > index) break
      flush()
      const { marker } = open[index] as Open
      const content = dropDownTo(index)
      top().content.push({ kind: kinds[marker as keyof typeof kinds], content })
      rest -= marker.length
      at += marker.length
      textFrom = at
    }
    if (rest > 0 && mayOpen) {
      for (const size of character === '~' ? [2] : rest === 3 ? [2, 1] : [rest]) {
        if (open.length > maxOpen) break
        flush()
        open.push({ marker: character.repeat(size), live: true, content: [] })
        at += size
        rest -= size
        textFrom = at
      }
    }
    at += length > 3 || (character === '~' && length !== 2) ? length : rest
  }

  function readBracket(marker: '[' | '![') {
    if (open.length <= maxOpen) {
      flush()
      open.push({ marker, live: true, content: [] })
      textFrom = at + marker.length
    }
    at += marker.length
  }

  function readBracketEnd(): void {
    const index = open.findLastIndex(isLiveBracket)
    if (index < 0) {
      at++
      return
    }
    const { marker } = open[index] as Open
    const isImage = marker === '!['
    const target = destination(source, at + 1)
    if (!target || !isLink(target.href, isImage)) {
      ;(open[index] as Open).live = false
      flush()
      if (index === open.length - 1) drop()
      at++
      return
    }
    flush()
    const content = dropDownTo(index)
    const { href, title, end } = target
    top().content.push({ kind: isImage ? 'image' : 'link', href, title, content })
    // Links cannot contain links.
    if (!isImage) for (const one of open) if (one.marker === '[') one.live = false
    at = end
    textFrom = end
  }

  function readAutolink(): void {
    autolink.lastIndex = at
    const [whole, href] = autolink.exec(source) ?? []
    if (whole && href && isSafeUrl(href)) add(plainLink(href), at + whole.length)
    else at++
  }

  function readUrl(): void {
    bareUrl.lastIndex = at
    const [found] = bareUrl.exec(source) ?? []
    const href = found && withoutPunctuation(found)
    if (href && isSafeUrl(href)) add(plainLink(href), at + href.length)
    // Skip all of an unsafe URL: further URLs within it would be read again and again.
    else at += href?.length || 1
  }
}

const isLiveBracket = ({ marker, live }: Open): boolean => live && marker.endsWith('[')

const plainLink = (href: string): Inline => ({ kind: 'link', href, title: '', content: [{ kind: 'text', text: href }] })

function addText(content: Inline[], text: string): void {
  if (text !== '') append(content, { kind: 'text', text })
}

function append(content: Inline[], node: Inline): void {
  const last = content.at(-1)
  if (node.kind === 'text' && last?.kind === 'text')
    content[content.length - 1] = { kind: 'text', text: last.text + node.text }
  else content.push(node)
}

const isSpace = (character: string | undefined): boolean => character === undefined || /\s/.test(character)
const isWord = (character: string | undefined): boolean => character !== undefined && wordCharacter.test(character)

/** How often the character at this position is repeated. */
function runLength(source: string, at: number): number {
  let end = at + 1
  while (source[end] === source[at]) end++
  return end - at
}

/** The positions of runs of backticks by their length, the last one first. */
function backtickRuns(source: string): Map<number, number[]> {
  const runs = new Map<number, number[]>()
  for (const { 0: run, index } of source.matchAll(/`+/g)) {
    const positions = runs.get(run.length)
    if (positions) positions.push(index)
    else runs.set(run.length, [index])
  }
  for (const positions of runs.values()) positions.reverse()
  return runs
}

/** One space on each side separates code from its backticks. */
const codeText = (text: string): string =>
  text.length > 2 && text.startsWith(' ') && text.endsWith(' ') && text.trim() !== '' ? text.slice(1, -1) : text

const autolink = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y
const bareUrl = /https?:\/\/[^\s<>"`]+/y

/** A URL in prose without the punctuation behind it, and without a parenthesis that was opened before it. */
function withoutPunctuation(url: string): string {
  let excess = 0
  for (const character of url) excess += character === ')' ? 1 : character === '(' ? -1 : 0
  let end = url.length
  for (; end > 0; end--) {
    const character = url[end - 1] as string
    if (character === ')' && excess > 0) excess--
    else if (!'.,;:!?*_~\'"]|'.includes(character)) break
  }
  return url.slice(0, end)
}

/** Parentheses within an address. The bound keeps the parser linear, because destinations may overlap. */
const maxParentheses = 3

/** Reads `(address "title")` at this position. */
function destination(source: string, start: number): { href: string; title: string; end: number } | undefined {
  if (source[start] !== '(') return undefined
  let at = start + 1
  const from = at
  let depth = 0
  for (; at < source.length; at++) {
    const character = source[at] as string
    if (isSpace(character) || (character === ')' && depth === 0)) break
    if (character === '(' && ++depth > maxParentheses) return undefined
    if (character === ')') depth--
  }
  const href = source.slice(from, at).replace(/^<|>$/g, '')
  if (source[at] === ' ') at++
  const quote = source[at]
  let title = ''
  if (quote === '"' || quote === "'") {
    const end = source.indexOf(quote, at + 1)
    if (end < 0) return undefined
    title = source.slice(at + 1, end)
    at = end + 1
  }
  return source[at] === ')' && depth === 0 ? { href, title, end: at + 1 } : undefined
}

/** Whether a link may lead there: only to web pages and mail addresses, without hidden credentials. */
export function isSafeUrl(href: string, webOnly = false): boolean {
  if (!(webOnly ? /^https?:\/\//i : /^(?:https?:\/\/|mailto:)/i).test(href) || !URL.canParse(href)) return false
  const { protocol, username, password } = new URL(href)
  return ['http:', 'https:', 'mailto:'].includes(protocol) && username === '' && password === ''
}
