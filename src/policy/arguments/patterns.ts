import { RE2JS } from 're2js'
import { charge } from './budget.ts'

/** Strings longer than this are not matched against patterns: the server has to do it. */
const longest = 64 * 1024

/** Instructions of a compiled pattern that one step of the budget pays for, for each character. */
const instructionsPerStep = 16

interface Pattern {
  test(text: string): boolean
}

const everything: Pattern = { test: () => true }

/**
 * Patterns of schemas, matched in linear time. What that engine does not know (lookaheads, back-references) matches
 * everything: a pattern that might stall the process is worse than one that the server checks alone.
 */
export function linearPattern(source: string): Pattern {
  const pattern = compiled(source)
  if (!pattern) return everything
  const cost = Math.ceil(pattern.programSize() / instructionsPerStep)
  return {
    test(text) {
      if (text.length > longest) return true
      charge(cost * (text.length + 1))
      return pattern.test(text)
    },
  }
}

function compiled(source: string): RE2JS | undefined {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source))
  } catch {
    return undefined
  }
}
