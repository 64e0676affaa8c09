import { stripTypeScriptTypes } from 'node:module'
import type { ProgramError } from './frames.ts'

/** TypeScript without its types, every other character where it was; or what is wrong with it. */
export function stripped(code: string): string | ProgramError {
  try {
    return stripTypeScriptTypes(code)
  } catch (thrown) {
    const { name, message, stack = '' } = thrown as Error
    if (name !== 'SyntaxError') return { name: 'SyntaxError', message: 'The program is too deeply nested.' }
    return { name, message, ...placeIn(stack) }
  }
}

/** The stack begins with the line's number, the lines before and at the fault, and marks below it. */
function placeIn(stack: string): { line?: number; column?: number } {
  const line = /^[^\n]*:(\d+)\n/.exec(stack)?.[1]
  const column = /^( *)\^+$/m.exec(stack)?.[1]?.length
  return { ...(line && { line: Number(line) }), ...(line && column !== undefined && { column: column + 1 }) }
}
