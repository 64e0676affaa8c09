import { RE2JS } from 're2js'
import { charge } from './budget.ts'

/** Strings longer than this are not matched against patterns: the server has to do it. */
const longest = 64 * 1024

/** Compiling takes up to 0.1 ms for each instruction and grows faster than a pattern's length, and everybody else waits. */
const maxPattern = 2048
const maxInstructions = 4096

/** Instructions of a compiled pattern that one step of the budget pays for, for each character. */
const instructionsPerStep = 16

interface Pattern {
  test(text: string): boolean
  /** The compiler takes patterns that read alike for one. */
  toString(): string
}

/**
 * Patterns of one schema, matched in linear time. What that engine does not know (lookaheads, back-references) matches
 * everything, and so does what is more than the patterns of a schema may be: a pattern that might stall the process is
 * worse than one that the server checks alone. Throws for what is not a pattern at all: its schema cannot be compiled.
 */
export function linearPatterns(): (source: string) => Pattern {
  let left = maxInstructions
  return (source) => {
    const pattern = left > 0 && source.length <= maxPattern ? compiled(source) : undefined
    left -= pattern?.programSize() ?? 0
    return { test: pattern ? linear(pattern) : () => true, toString: () => source }
  }
}

function linear(pattern: RE2JS): Pattern['test'] {
  const cost = Math.ceil(pattern.programSize() / instructionsPerStep)
  return (text) => {
    if (text.length > longest) return true
    charge(cost * (text.length + 1))
    return pattern.test(text)
  }
}

function compiled(source: string): RE2JS | undefined {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source))
  } catch {
    if (!isPattern(source)) throw new SyntaxError('not a regular expression')
    return undefined
  }
}

/** JSON Schema asks for Unicode patterns, but many are written for the older syntax. */
const isPattern = (source: string): boolean => parses(source, 'u') || parses(source, '')

function parses(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags)
    return true
  } catch {
    return false
  }
}
