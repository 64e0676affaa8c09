import { stripTypeScriptTypes } from 'node:module'
import { EvalFlags, JSException, type JSValueHandle, type QuickJS } from 'quickjs-wasi'
import type { ProgramError } from '../../core/executor.ts'

const programFile = 'program.js'
const preludeFile = 'prelude.js'

/** A started program: the promise of its value, or a syntax error. */
type Begun = { readonly promise: JSValueHandle; readonly returned: boolean } | { readonly error: ProgramError }

/** Wraps a program with a top-level `return` in a function, which makes its variables local. */
const inFunction = (code: string) => `(async () => {\n${code}\n})()`

/**
 * Starts a program in the global scope, so that its variables outlive it. Supports top-level `await`. With `keep`, later
 * programs can declare the same names again.
 */
export function beginProgram(vm: QuickJS, code: string, language: string, keep: boolean): Begun {
  const begun = beginGlobally(vm, code, language, keep)
  return 'error' in begun ? { error: explainMistake(begun.error, code, language) } : begun
}

function beginGlobally(vm: QuickJS, code: string, language: string, keep: boolean): Begun {
  const script = language === 'typescript' ? stripTypes(code) : code
  if (typeof script === 'string') {
    const promise = keep ? beginRedeclarable(vm, script) : undefined
    if (promise) return { promise, returned: false }
    try {
      return { promise: vm.evalCode(script, programFile, EvalFlags.ASYNC), returned: false }
    } catch (thrown) {
      const error = exceptionError(thrown, 0)
      if (!error.message.startsWith('return not in a function')) return { error }
    }
  } else if (!script.message.startsWith('Return statement is not allowed')) {
    return { error: script }
  }
  return beginReturning(vm, code, language)
}

function beginRedeclarable(vm: QuickJS, script: string): JSValueHandle | undefined {
  try {
    return vm.evalCode(redeclarable(script), programFile, EvalFlags.ASYNC)
  } catch (thrown) {
    // Not valid, or nested too deeply: the original program has the same fault, with the right position.
    if (thrown instanceof JSException || thrown instanceof RangeError) return undefined
    throw thrown
  }
}

function beginReturning(vm: QuickJS, code: string, language: string): Begun {
  const script = language === 'typescript' ? stripTypes(inFunction(code)) : inFunction(code)
  if (typeof script !== 'string') return { error: { ...script, line: script.line && script.line - 1 } }
  try {
    return { promise: vm.evalCode(script, programFile), returned: true }
  } catch (thrown) {
    return { error: exceptionError(thrown, 1) }
  }
}

/** Improves the error messages for mistakes that models often make. */
function explainMistake(error: ProgramError, code: string, language: string): ProgramError {
  const line = code.split('\n')[(error.line ?? 1) - 1] ?? ''
  if (/^\s*(import|export)\b/.test(line))
    return { ...error, message: 'Modules are not supported: remove import and export.' }
  if (language !== 'javascript' || typeof stripTypes(inFunction(code)) !== 'string') return error
  // A model that has read TypeScript declarations is likely to write types.
  return { ...error, message: `${error.message} (to use types, set "language" to "typescript")` }
}

export function runPrelude(vm: QuickJS, prelude: string): void {
  vm.evalCode(prelude, preludeFile).dispose()
}

/** Converts an exception from the engine; rethrows anything else, such as a WebAssembly trap. */
function exceptionError(thrown: unknown, linesBefore: number): ProgramError {
  if (!(thrown instanceof JSException)) throw thrown
  const { name, message, stack = '' } = thrown
  return { name, message, ...placeIn(stack, linesBefore) }
}

/** The innermost position in the program that a stack trace names. Line 1 is the program's first line. */
export function placeIn(stack: string, linesBefore: number): { line?: number; column?: number } {
  const [, line, column] = /\bprogram\.js:(\d+):(\d+)/.exec(stack) ?? []
  return line === undefined ? {} : { line: Math.max(1, Number(line) - linesBefore), column: Number(column) }
}

/** Removes TypeScript types without changing positions. Returns the syntax error if there is one. */
function stripTypes(code: string): string | ProgramError {
  try {
    return stripTypeScriptTypes(code)
  } catch (thrown) {
    const { name, message, stack = '' } = thrown as Error
    if (name !== 'SyntaxError') return { name: 'SyntaxError', message: 'The program is too deeply nested.' }
    return { name, message, ...positionOf(stack) }
  }
}

/** The position in a syntax error's stack, which starts with the line number, the source and markers below it. */
function positionOf(stack: string): { line?: number; column?: number } {
  const line = /^[^\n]*:(\d+)\n/.exec(stack)?.[1]
  const column = /^( *)\^+$/m.exec(stack)?.[1]?.length
  if (line === undefined) return {}
  return { line: Number(line), column: column === undefined ? undefined : column + 1 }
}

/** White space or a comment, a string, a word, a number, or one other character. */
const sourceToken =
  /(?<gap>\s+|\/\/.*|\/\*[\s\S]*?\*\/)|"(?:\\[\s\S]|[^\\"])*"|'(?:\\[\s\S]|[^\\'])*'|[\p{ID_Start}$_#][\p{ID_Continue}$]*|\d[\w.]*|[\s\S]/uy
const regExp = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/uy
const startOfName = /^[\p{ID_Start}$_]/u

/** Words after which an expression begins: a slash begins a regular expression, and `class` is not a declaration. */
const expressionWords = new Set(
  'return typeof case do else in of instanceof new delete void throw await yield'.split(' '),
)
const endsExpression = (last: string) => /[\p{ID_Continue}$)\]}"'`]/u.test(last.slice(-1)) && !expressionWords.has(last)

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
    const begins = last === '' || last === ';' || last === '}' || (afterBreak && endsExpression(last))
    let written = text
    if (isTop && text === 'const' && last !== '.') written = 'var  '
    else if (isTop && text === 'let' && begins && /^[\p{ID_Start}$_[{]/u.test(nextSource(code, at))) {
      written = 'var'
      inLet = true
    } else if (isTop && text === 'class' && begins && startOfName.test(nextSource(code, at))) {
      written = `var ${/^[\p{ID_Continue}$]*/u.exec(nextSource(code, at))?.[0]} = class`
      inClass = true
    } else if (isTop && declares && startOfName.test(text) && !nextSource(code, at).startsWith('=')) {
      // Unlike `let`, `var` would keep the value from an earlier program. The next line must not continue the value.
      written = `${text} = void 0${/^[,;]/.test(nextSource(code, at)) ? '' : ';'}`
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
  sourceToken.lastIndex = at
  const { 0: text, groups } = sourceToken.exec(code) as RegExpExecArray
  if (text !== '/' || endsExpression(last)) return { text, gap: groups?.gap !== undefined }
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
function nextSource(code: string, start: number): string {
  let at = start
  for (;;) {
    sourceToken.lastIndex = at
    const found = sourceToken.exec(code)
    if (found?.groups?.gap === undefined) return code.slice(at, at + 100)
    at += found[0].length
  }
}
