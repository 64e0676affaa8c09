import { stripTypeScriptTypes } from 'node:module'
import { EvalFlags, JSException, type JSValueHandle, type QuickJS } from 'quickjs-wasi'
import type { ProgramError } from '../../core/executor.ts'
import { redeclarable } from './redeclarable.ts'

const programFile = 'program.js'
const preludeFile = 'prelude.js'

/** A started program: the promise of its value, or a syntax error. */
type Begun =
  | { readonly promise: JSValueHandle; readonly returned: boolean; readonly linesBefore: number }
  | { readonly error: ProgramError }

/** Wraps a program with a top-level `return` in a function, which makes its variables local. */
const wrapped = (code: string) => `(async () => {\n${code}\n})()`

/**
 * Starts a program in the global scope, so that its variables outlive it. Supports top-level `await`. With `keep`, later
 * programs can declare the same names again.
 */
export function begin(vm: QuickJS, code: string, language: string, keep: boolean): Begun {
  const begun = beginGlobally(vm, code, language, keep)
  return 'error' in begun ? { error: explained(begun.error, code, language) } : begun
}

function beginGlobally(vm: QuickJS, code: string, language: string, keep: boolean): Begun {
  const script = language === 'typescript' ? stripped(code) : code
  if (typeof script === 'string') {
    const promise = keep ? beginRedeclarable(vm, script) : undefined
    if (promise) return { promise, returned: false, linesBefore: 0 }
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
  const script = language === 'typescript' ? stripped(wrapped(code)) : wrapped(code)
  if (typeof script !== 'string') return { error: { ...script, line: script.line && script.line - 1 } }
  try {
    return { promise: vm.evalCode(script, programFile), returned: true, linesBefore: 1 }
  } catch (thrown) {
    return { error: errorOf(thrown, 1) }
  }
}

/** Improves the error messages for mistakes that models often make. */
function explained(error: ProgramError, code: string, language: string): ProgramError {
  const line = code.split('\n')[(error.line ?? 1) - 1] ?? ''
  if (/^\s*(import|export)\b/.test(line))
    return { ...error, message: 'Modules are not supported: remove import and export.' }
  if (language !== 'javascript' || typeof stripped(wrapped(code)) !== 'string') return error
  // A model that has read TypeScript declarations is likely to write types.
  return { ...error, message: `${error.message} (to use types, set "language" to "typescript")` }
}

export function runPrelude(vm: QuickJS, prelude: string): void {
  vm.evalCode(prelude, preludeFile).dispose()
}

/** Converts an exception from the engine; rethrows anything else, such as a WebAssembly trap. */
function errorOf(thrown: unknown, linesBefore: number): ProgramError {
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
function stripped(code: string): string | ProgramError {
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
