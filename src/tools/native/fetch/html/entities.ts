/** The names that pages really use; others stay as they are written. */
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

/** These were read without their semicolon before there was a standard. */
const loose = new Set(['amp', 'lt', 'gt', 'quot', 'nbsp', 'copy'])

/** Replaces entities in one pass: what comes out of one is not read as another. */
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
