import { stripTypeScriptTypes } from 'node:module'
import { EvalFlags, JSException, type JSValueHandle, type QuickJS } from 'quickjs-wasi'
import type { ProgramError } from './protocol.ts'

const programFile = 'program.js'
const preludeFile = 'prelude.js'

/** A program that has begun: the promise of its value, or what is wrong with its text. */
export type Begun =
  | { readonly promise: JSValueHandle; readonly returned: boolean; readonly linesBefore: number }
  | { readonly error: ProgramError }

/** A function of its own around a program that returns something; its variables are then its own, too. */
const wrapped = (code: string) => `(async () => {\n${code}\n})()`

/** Begins a program in the global scope, where its variables stay for the next one; `await` may stand anywhere. */
export function begin(vm: QuickJS, code: string, language: string): Begun {
  const begun = beginGlobally(vm, code, language)
  return 'error' in begun ? { error: explained(begun.error, code, language) } : begun
}

function beginGlobally(vm: QuickJS, code: string, language: string): Begun {
  const script = language === 'typescript' ? stripped(code) : code
  if (typeof script === 'string') {
    try {
      return { promise: vm.evalCode(script, programFile, EvalFlags.ASYNC), returned: false, linesBefore: 0 }
    } catch (thrown) {
      const error = errorOf(thrown, 0)
      if (!error.message.startsWith('return not in a function')) return { error }
    }
  } else if (!script.message.startsWith('Return statement is not allowed')) {
    return { error: script }
  }
  return beginReturning(vm, code, language)
}

function beginReturning(vm: QuickJS, code: string, language: string): Begun {
  const script = language === 'typescript' ? stripped(wrapped(code)) : wrapped(code)
  if (typeof script !== 'string') return { error: { ...script, ...(script.line && { line: script.line - 1 }) } }
  try {
    return { promise: vm.evalCode(script, programFile), returned: true, linesBefore: 1 }
  } catch (thrown) {
    return { error: errorOf(thrown, 1) }
  }
}

/** Says more of what models often write and engines have few words for. */
function explained(error: ProgramError, code: string, language: string): ProgramError {
  const line = code.split('\n')[(error.line ?? 1) - 1] ?? ''
  if (/^\s*(import|export)\b/.test(line)) {
    return { ...error, message: 'There are no modules here: nothing can be imported or exported.' }
  }
  if (language !== 'javascript' || typeof stripped(wrapped(code)) !== 'string') return error
  // Whoever has read TypeScript declarations is likely to write types.
  return { ...error, message: `${error.message} (types need "language": "typescript")` }
}

/** Runs our own text before a program, in the same scope. */
export function runPrelude(vm: QuickJS, prelude: string): void {
  vm.evalCode(prelude, preludeFile).dispose()
}

/** An exception of the engine as the program's error; what is not one is a trap and goes on. */
function errorOf(thrown: unknown, linesBefore: number): ProgramError {
  if (!(thrown instanceof JSException)) throw thrown
  const { name, message, stack = '' } = thrown
  return { name, message, ...placeIn(stack, linesBefore) }
}

/** The innermost place in the program that a stack names, counted in the lines of its own text. */
export function placeIn(stack: string, linesBefore: number): { line?: number; column?: number } {
  const [, line, column] = /\bprogram\.js:(\d+):(\d+)/.exec(stack) ?? []
  return line === undefined ? {} : { line: Math.max(1, Number(line) - linesBefore), column: Number(column) }
}

/** TypeScript without its types, every other character where it was; or what is wrong with it. */
function stripped(code: string): string | ProgramError {
  try {
    return stripTypeScriptTypes(code)
  } catch (thrown) {
    const { name, message, stack = '' } = thrown as Error
    if (name !== 'SyntaxError') return { name: 'SyntaxError', message: 'The program is too deeply nested.' }
    return { name, message, ...positionOf(stack) }
  }
}

/** The stack begins with the line's number, the lines before and at the fault, and marks below it. */
function positionOf(stack: string): { line?: number; column?: number } {
  const line = /^[^\n]*:(\d+)\n/.exec(stack)?.[1]
  const column = /^( *)\^+$/m.exec(stack)?.[1]?.length
  return { ...(line && { line: Number(line) }), ...(line && column !== undefined && { column: column + 1 }) }
}
