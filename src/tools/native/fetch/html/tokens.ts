export type HtmlToken =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'open'; readonly name: string; readonly attributes: ReadonlyMap<string, string> }
  | { readonly kind: 'close'; readonly name: string }

/** Elements whose content is not markup and ends only at the element's own end tag. */
const raw = new Set(['script', 'style', 'title', 'textarea', 'xmp', 'iframe', 'noembed', 'noframes', 'noscript'])

const letter = /[a-z]/i
const nameEnd = /[\s/>]/g
const space = /\s/

/** Max attributes to read per element. Reading more would only cost time. */
const maxAttributes = 64

/**
 * Splits a page into tags and text. Accepts any input. It runs in linear time because it never backtracks: an
 * unterminated tag or comment extends to the end of the page, as in a browser.
 */
export function* tokensOf(html: string): Generator<HtmlToken> {
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
      // The page ends inside this tag.
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
  // No element has a name this long, so ignore the name.
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
  /** The position after the closing `>`; beyond the end of the page if there is none. */
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
    // An attribute name may start with an equals sign, but any later equals sign ends the name.
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

/** Entities that are common in practice. All others are kept as written. */
const named: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', copy: '©', reg: '®', trade: '™', deg: '°' },
  ...{ hellip: '…', mdash: '—', ndash: '–', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', sbquo: '‚', bdquo: '„' },
  ...{ laquo: '«', raquo: '»', lsaquo: '‹', rsaquo: '›', bull: '•', middot: '·', sect: '§', para: '¶', dagger: '†' },
  ...{ euro: '€', pound: '£', yen: '¥', cent: '¢', curren: '¤', times: '×', divide: '÷', plusmn: '±', minus: '−' },
  ...{ frac12: '½', frac14: '¼', frac34: '¾', sup1: '¹', sup2: '²', sup3: '³', micro: 'µ', ordf: 'ª', ordm: 'º' },
  ...{ larr: '←', uarr: '↑', rarr: '→', darr: '↓', harr: '↔', rArr: '⇒', lArr: '⇐', hArr: '⇔', check: '✓', star: '☆' },
  ...{ le: '≤', ge: '≥', ne: '≠', asymp: '≈', equiv: '≡', infin: '∞', sum: '∑', prod: '∏', radic: '√', part: '∂' },
  ...{ alpha: 'α', beta: 'β', gamma: 'γ', delta: 'δ', epsilon: 'ε', theta: 'θ', lambda: 'λ', mu: 'μ', pi: 'π' },
  ...{ sigma: 'σ', tau: 'τ', phi: 'φ', omega: 'ω', Delta: 'Δ', Sigma: 'Σ', Omega: 'Ω', Pi: 'Π', Phi: 'Φ' },
  ...{ auml: 'ä', ouml: 'ö', uuml: 'ü', Auml: 'Ä', Ouml: 'Ö', Uuml: 'Ü', szlig: 'ß', euml: 'ë', iuml: 'ï', yuml: 'ÿ' },
  ...{ aacute: 'á', eacute: 'é', iacute: 'í', oacute: 'ó', uacute: 'ú', yacute: 'ý', Aacute: 'Á', Eacute: 'É' },
  ...{ Iacute: 'Í', Oacute: 'Ó', Uacute: 'Ú', agrave: 'à', egrave: 'è', igrave: 'ì', ograve: 'ò', ugrave: 'ù' },
  ...{ Agrave: 'À', Egrave: 'È', acirc: 'â', ecirc: 'ê', icirc: 'î', ocirc: 'ô', ucirc: 'û', Acirc: 'Â', Ecirc: 'Ê' },
  ...{ atilde: 'ã', otilde: 'õ', ntilde: 'ñ', Ntilde: 'Ñ', ccedil: 'ç', Ccedil: 'Ç', aring: 'å', Aring: 'Å' },
  ...{ aelig: 'æ', AElig: 'Æ', oelig: 'œ', OElig: 'Œ', oslash: 'ø', Oslash: 'Ø', eth: 'ð', thorn: 'þ', iexcl: '¡' },
  ...{ iquest: '¿', ensp: ' ', emsp: ' ', thinsp: ' ', shy: '', zwnj: '', zwj: '', lrm: '', rlm: '', zwsp: '' },
}

/** Entities that older pages write without a semicolon. */
const loose = new Set(['amp', 'lt', 'gt', 'quot', 'nbsp', 'copy'])

/** Decodes entities in one pass, so that decoded text is never decoded again. */
export const decodeEntities = (text: string): string =>
  text.includes('&')
    ? text.replace(
        /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z][a-z0-9]{1,31}))(;?)/gi,
        (whole, hex, decimal, name, end) => {
          if (name === undefined) return characterOf(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16))
          const found = Object.hasOwn(named, name) ? named[name] : undefined
          return found !== undefined && (end === ';' || loose.has(name)) ? found : whole
        },
      )
    : text

function characterOf(point: number): string {
  const impossible = point === 0 || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)
  return impossible ? '\ufffd' : String.fromCodePoint(point)
}
