/** White space or a comment, a string, a word, a number, or one other character. */
const token =
  /(?<gap>\s+|\/\/.*|\/\*[\s\S]*?\*\/)|"(?:\\[\s\S]|[^\\"])*"|'(?:\\[\s\S]|[^\\'])*'|[\p{ID_Start}$_#][\p{ID_Continue}$]*|\d[\w.]*|[\s\S]/uy
const regExp = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/uy
const startOfName = /^[\p{ID_Start}$_]/u

/** Words after which an expression begins: a slash begins a regular expression, and `class` is not a declaration. */
const operators = new Set('return typeof case do else in of instanceof new delete void throw await yield'.split(' '))
const endsValue = (last: string) => /[\p{ID_Continue}$)\]}"'`]/u.test(last.slice(-1)) && !operators.has(last)

/**
 * Replaces `let`, `const` and `class` at the top level with `var`. An environment keeps its variables, and only `var` can
 * declare one again, as a model does when it corrects its program. This is not a parser: if the result is not valid, run
 * the original program.
 */
export function redeclarable(code: string): string {
  let out = ''
  let depth = 0
  let last = ''
  let afterBreak = true
  let inClass = false
  let inLet = false
  /** Whether the next name is one that `let` declares. */
  let declares = false

  for (let at = 0; at < code.length; ) {
    const { text, gap } = tokenAt(code, at, last)
    at += text.length
    if (gap) {
      out += text
      afterBreak ||= text.includes('\n')
      continue
    }
    const isTop = depth === 0
    if (isTop && (text === ';' || (afterBreak && last !== ',' && text !== ','))) inLet = false
    const begins = last === '' || last === ';' || last === '}' || (afterBreak && endsValue(last))
    let written = text
    if (isTop && text === 'const' && last !== '.') written = 'var  '
    else if (isTop && text === 'let' && begins && /^[\p{ID_Start}$_[{]/u.test(rest(code, at))) {
      written = 'var'
      inLet = true
    } else if (isTop && text === 'class' && begins && startOfName.test(rest(code, at))) {
      written = `var ${/^[\p{ID_Continue}$]*/u.exec(rest(code, at))?.[0]} = class`
      inClass = true
    } else if (isTop && declares && startOfName.test(text) && !rest(code, at).startsWith('=')) {
      // Unlike `let`, `var` would keep the value from an earlier program. The next line must not continue the value.
      written = `${text} = void 0${/^[,;]/.test(rest(code, at)) ? '' : ';'}`
    }
    declares = isTop && inLet && (written === 'var' || text === ',')
    if ('([{'.includes(text)) depth++
    else if (')]}'.includes(text)) depth--
    if (inClass && depth === 0 && text === '}') {
      // A class ends at its brace, but this expression would continue on the next line.
      written = '};'
      inClass = false
    }
    out += written
    last = text
    afterBreak = false
  }
  return out
}

function tokenAt(code: string, at: number, last: string): { readonly text: string; readonly gap: boolean } {
  if (code[at] === '`') return { text: templateAt(code, at), gap: false }
  token.lastIndex = at
  const { 0: text, groups } = token.exec(code) as RegExpExecArray
  if (text !== '/' || endsValue(last)) return { text, gap: groups?.gap !== undefined }
  regExp.lastIndex = at
  return { text: regExp.exec(code)?.[0] ?? text, gap: false }
}

/** The template that begins at a position, with the expressions in it. */
function templateAt(code: string, start: number): string {
  let at = start + 1
  while (at < code.length && code[at] !== '`') {
    if (code.startsWith('${', at)) at = endOfBlock(code, at + 1)
    else at += code[at] === '\\' ? 2 : 1
  }
  return code.slice(start, at + 1)
}

function endOfBlock(code: string, start: number): number {
  let at = start
  let depth = 0
  let last = ''
  do {
    const { text, gap } = tokenAt(code, at, last)
    at += text.length
    if (text === '{') depth++
    else if (text === '}') depth--
    if (!gap) last = text
  } while (depth > 0 && at < code.length)
  return at
}

/** The beginning of what follows white space and comments. */
function rest(code: string, start: number): string {
  let at = start
  for (;;) {
    token.lastIndex = at
    const found = token.exec(code)
    if (found?.groups?.gap === undefined) return code.slice(at, at + 100)
    at += found[0].length
  }
}
