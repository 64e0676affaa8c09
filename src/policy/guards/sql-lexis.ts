/** What one dialect, with one set of settings, takes for quotes and comments. */
export interface Lexis {
  readonly name: string
  /** Quotes inside which a backslash escapes the next character. */
  readonly backslash?: 'single' | 'both' | undefined
  /** `E'…'` is a string with backslashes. */
  readonly escapeStrings?: boolean
  /** `$$…$$`, with a tag between the dollars or without one only. */
  readonly dollar?: 'tagged' | 'bare'
  /** `q'[…]'`. */
  readonly alternative?: boolean
  /** `'''…'''` and `"""…"""`. */
  readonly triple?: boolean
  readonly backquote?: boolean
  /** `[…]`, which ends at the first `]`, or in which `]]` stands for one. */
  readonly bracket?: 'first' | 'doubled'
  /** `--` starts a comment only before a space or a control character. */
  readonly spacedDashes?: boolean
  readonly hash?: boolean
  /** `//` starts a comment. */
  readonly slashes?: boolean
  readonly nestedComments?: boolean
  /** The content of `/*! … *\/` is run. */
  readonly executableComments?: boolean
  /** A comment of one line also ends at a carriage return. */
  readonly returnEnds?: boolean
}

export type SpanKind = 'string' | 'name' | 'bracket' | 'comment'

/** A stretch that is not code: `text.slice(start, end)`, quotes included. */
export interface Span {
  readonly kind: SpanKind
  readonly start: number
  readonly end: number
  readonly closed: boolean
}

/** In the place of an end. */
const unclosed = -1

const closing: Readonly<Record<string, string>> = { '[': ']', '(': ')', '{': '}', '<': '>' }
const tagged = /\$(?:[A-Za-z_\x80-\uffff][\w\x80-\uffff]*)?\$/y
const word = /[\w$\x80-\uffff]/

/** Splits a text as one dialect does. Whatever is not closed reaches to the end. */
export function spansOf(text: string, lexis: Lexis): readonly Span[] {
  const spans: Span[] = []
  let at = 0
  const add = (kind: SpanKind, found: number) => {
    const closed = found !== unclosed
    const end = closed ? found : text.length
    spans.push({ kind, start: at, end, closed })
    at = end
  }
  while (at < text.length) {
    const sign = text[at] as string
    const next = text[at + 1]
    if (sign === "'" || sign === '"') add(sign === "'" ? 'string' : 'name', endOfQuoted(text, at, lexis))
    else if (sign === '`' && lexis.backquote) add('name', endOfRun(text, at + 1, '`', lexis.triple === true))
    else if (sign === '[' && lexis.bracket) add('bracket', endOfBracket(text, at, lexis.bracket))
    else if (sign === '$' && lexis.dollar) {
      const end = endOfDollar(text, at, lexis.dollar)
      if (end === undefined) at++
      else add('string', end)
    } else if (sign === '-' && next === '-' && (!lexis.spacedDashes || isGap(text, at + 2))) {
      add('comment', endOfLine(text, at, lexis))
    } else if ((sign === '#' && lexis.hash) || (sign === '/' && next === '/' && lexis.slashes)) {
      add('comment', endOfLine(text, at, lexis))
    } else if (sign === '/' && next === '*') {
      if (lexis.executableComments && /^(?:M?!)/.test(text.slice(at + 2, at + 4))) at += 3
      else add('comment', endOfComment(text, at, lexis))
    } else at++
  }
  return spans
}

function endOfQuoted(text: string, at: number, lexis: Lexis): number {
  const quote = text[at] as string
  if (lexis.triple && text.startsWith(quote.repeat(3), at)) {
    return endOfTriple(text, at + 3, quote.repeat(3))
  }
  if (quote === "'") {
    const delimiter = lexis.alternative && prefixed(text, at, /[nN]?[qQ]$/) ? text[at + 1] : undefined
    if (delimiter !== undefined && !/\s/.test(delimiter)) {
      const end = text.indexOf(`${closing[delimiter] ?? delimiter}'`, at + 2)
      return end === -1 ? unclosed : end + 2
    }
    const escapes = lexis.backslash !== undefined || (lexis.escapeStrings === true && prefixed(text, at, /[eE]$/))
    return endOfRun(text, at + 1, quote, escapes)
  }
  return endOfRun(text, at + 1, quote, lexis.backslash === 'both')
}

/** Whether a prefix stands before the quote that is a word of its own. */
function prefixed(text: string, at: number, prefix: RegExp): boolean {
  const before = text.slice(Math.max(0, at - 3), at)
  const found = prefix.exec(before)
  if (!found) return false
  const outside = at - found[0].length - 1
  return outside < 0 || !word.test(text[outside] as string)
}

/** After the closing quote, where a doubled one stands for itself. */
function endOfRun(text: string, from: number, quote: string, escapes: boolean): number {
  for (let at = from; at < text.length; at++) {
    if (escapes && text[at] === '\\') at++
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) return at + 1
      at++
    }
  }
  return unclosed
}

function endOfTriple(text: string, from: number, quotes: string): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text.startsWith(quotes, at)) return at + quotes.length
  }
  return unclosed
}

function endOfBracket(text: string, start: number, form: 'first' | 'doubled'): number {
  if (form === 'doubled') return endOfRun(text, start + 1, ']', false)
  const end = text.indexOf(']', start)
  return end === -1 ? unclosed : end + 1
}

/** Undefined where the dollar starts no quote. */
function endOfDollar(text: string, at: number, form: 'tagged' | 'bare'): number | undefined {
  if (at > 0 && word.test(text[at - 1] as string)) return undefined
  tagged.lastIndex = at
  const tag = form === 'bare' ? (text[at + 1] === '$' ? '$$' : undefined) : tagged.exec(text)?.[0]
  if (tag === undefined) return undefined
  const end = text.indexOf(tag, at + tag.length)
  return end === -1 ? unclosed : end + tag.length
}

const isGap = (text: string, at: number): boolean => at >= text.length || /[\0-\x20]/.test(text[at] as string)

function endOfLine(text: string, at: number, { returnEnds }: Lexis): number {
  const end = text.slice(at).search(returnEnds ? /[\n\r]/ : /\n/)
  return end === -1 ? text.length : at + end
}

function endOfComment(text: string, start: number, { nestedComments }: Lexis): number {
  let depth = 1
  for (let at = start + 2; at < text.length; at++) {
    if (text.startsWith('*/', at)) {
      depth--
      at++
      if (depth === 0) return at + 1
    } else if (nestedComments && text.startsWith('/*', at)) {
      depth++
      at++
    }
  }
  return unclosed
}
