/** What a page is made of, in the order it comes. */
export type Token =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'open'; readonly name: string; readonly attributes: ReadonlyMap<string, string> }
  | { readonly kind: 'close'; readonly name: string }

/** Elements whose content is no markup: it ends at their own end tag only. */
const raw = new Set(['script', 'style', 'title', 'textarea', 'xmp', 'iframe', 'noembed', 'noframes', 'noscript'])

const letter = /[a-z]/i
const nameEnd = /[\s/>]/g
const space = /\s/

/** More attributes than this only cost time. */
const maxAttributes = 64

/**
 * Cuts a page into tags and text. Any text is a page, however broken; every character is passed once, because nothing
 * is ever looked at again: a tag or comment without an end takes the rest with it, as in a browser.
 */
export function* tokensOf(html: string): Generator<Token> {
  let at = 0
  while (at < html.length) {
    const tag = html.indexOf('<', at)
    if (tag < 0) return void (yield { kind: 'text', text: html.slice(at) })
    if (tag > at) yield { kind: 'text', text: html.slice(at, tag) }
    const next = html[tag + 1] ?? ''
    if (html.startsWith('<!--', tag)) at = after(html, '-->', tag + 2)
    else if (next === '!' || next === '?') at = after(html, '>', tag + 2)
    else if (next === '/') {
      const end = after(html, '>', tag + 2)
      const name = nameAt(html, tag + 2)
      if (name !== '') yield { kind: 'close', name }
      at = end
    } else if (letter.test(next)) {
      const { attributes, end, name } = openingTag(html, tag + 1)
      at = end
      // Cut off in mid-tag: there is nothing after it.
      if (end > html.length) return
      yield { kind: 'open', name, attributes }
      if (!raw.has(name)) continue
      const close = endOfRaw(html, name, at)
      if (close > at) yield { kind: 'text', text: html.slice(at, close) }
      at = close
    } else {
      yield { kind: 'text', text: '<' }
      at = tag + 1
    }
  }
}

function after(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from)
  return at < 0 ? html.length : at + mark.length
}

function nameAt(html: string, from: number): string {
  nameEnd.lastIndex = from
  const end = nameEnd.exec(html)?.index ?? html.length
  // No element has a name of any length: the rest of a page is none.
  return end - from > 64 ? '' : html.slice(from, end).toLowerCase()
}

function endOfRaw(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}(?=[\\s/>])`, 'gi')
  close.lastIndex = from
  return close.exec(html)?.index ?? html.length
}

interface Opening {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
  /** Behind its `>`; beyond the page where it has none. */
  readonly end: number
}

function openingTag(html: string, from: number): Opening {
  nameEnd.lastIndex = from
  const nameStop = nameEnd.exec(html)?.index ?? html.length
  const name = html.slice(from, Math.min(nameStop, from + 64)).toLowerCase()
  const attributes = new Map<string, string>()
  let at = nameStop
  for (;;) {
    while (at < html.length && (html[at] === '/' || space.test(html[at] as string))) at++
    if (at >= html.length) return { name, attributes, end: html.length + 1 }
    if (html[at] === '>') return { name, attributes, end: at + 1 }
    const keyStart = at
    // An equals sign may begin a name, but not end it.
    at++
    while (at < html.length && !/[\s/>=]/.test(html[at] as string)) at++
    const key = html.slice(keyStart, at).toLowerCase()
    const value = valueAt(html, at)
    at = value.end
    if (attributes.size < maxAttributes && !attributes.has(key)) attributes.set(key, value.text)
  }
}

function valueAt(html: string, from: number): { readonly text: string; readonly end: number } {
  let at = from
  while (at < html.length && space.test(html[at] as string)) at++
  if (html[at] !== '=') return { text: '', end: at }
  at++
  while (at < html.length && space.test(html[at] as string)) at++
  const quote = html[at]
  if (quote === '"' || quote === "'") {
    const end = html.indexOf(quote, at + 1)
    return end < 0 ? { text: '', end: html.length } : { text: html.slice(at + 1, end), end: end + 1 }
  }
  const start = at
  while (at < html.length && !/[\s>]/.test(html[at] as string)) at++
  return { text: html.slice(start, at), end: at }
}
