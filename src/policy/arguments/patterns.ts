import { RE2JS } from 're2js'
import { charge } from './check-run.ts'

/** Max characters in a string matched against a pattern. For longer strings, only the server checks the pattern. */
const maxMatched = 64 * 1024

/** Limits for patterns. Compiling blocks the event loop, up to 0.1 ms per instruction, and takes superlinear time. */
const maxPatternLength = 2048
const maxPatternInstructions = 4096

/** How many instructions of a compiled pattern cost one budget step, for each character of the text. */
const instructionsPerStep = 16

/** Compiles a pattern to a test of texts. */
export type PatternCompiler = (source: string) => (text: string) => boolean

/**
 * Matches the patterns of one schema in linear time. Patterns that RE2 does not support (lookaheads, back-references)
 * match everything, and so do patterns beyond the limits: it is better to leave a pattern to the server than to let it
 * block the process. Throws for an invalid pattern, so that its schema fails to compile.
 */
export function linearPatterns(): PatternCompiler {
  let left = maxPatternInstructions
  return (source) => {
    const pattern = left > 0 && source.length <= maxPatternLength ? compileRe2(source) : undefined
    left -= pattern?.programSize() ?? 0
    return pattern ? linear(pattern) : () => true
  }
}

/** How many instructions a pattern may have that callers write to search long texts. */
const maxSearchInstructions = 256

/** Tests texts for a pattern in linear time; undefined for a pattern that RE2 does not support, or that is too large. */
export function searchPattern(source: string): ((text: string) => boolean) | undefined {
  try {
    const pattern = source.length <= maxPatternLength ? compileRe2(source) : undefined
    return pattern && pattern.programSize() <= maxSearchInstructions ? (text) => pattern.test(text) : undefined
  } catch {
    return undefined
  }
}

function linear(pattern: RE2JS): (text: string) => boolean {
  const cost = Math.ceil(pattern.programSize() / instructionsPerStep)
  return (text) => {
    if (text.length > maxMatched) return true
    charge(cost * (text.length + 1))
    return pattern.test(text)
  }
}

function compileRe2(source: string): RE2JS | undefined {
  try {
    const joined = withWholeCharacters(source)
    return hasUnsupportedEscape(joined) ? undefined : RE2JS.compile(withUnicodeSpaces(RE2JS.translateRegExp(joined)))
  } catch {
    if (!isValidPattern(source)) throw new SyntaxError(`not a valid regular expression: ${source}`)
    return undefined
  }
}

/** Replaces the escapes of surrogate pairs, `\\ud83d\\ude00`, with those of the characters that they mean. */
const withWholeCharacters = (source: string): string =>
  source.replace(/\\u(d[89ab]..)\\u(d[c-f]..)|\\[\s\S]/gi, (found, high, low) => {
    if (high === undefined) return found
    const code = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)).codePointAt(0) as number
    return `\\u{${code.toString(16)}}`
  })

/**
 * Whether a pattern has an escape that would be compiled as ordinary characters: a named back-reference, a lone
 * surrogate, or the end of the text in Python.
 */
const hasUnsupportedEscape = (source: string): boolean =>
  source.match(/\\(?:u[dD][89a-fA-F]|[\s\S])/g)?.some((found) => found.length > 2 || /[kZ]/.test(found)) ?? false

// Each ends with a class, so that a hyphen after it does not make a range: `[\s-x]`.
const spaceClass = String.raw`\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}\s`
const nonSpaceClass = String.raw`\x00-\x08\x0E-\x1F\x21-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{FEFE}\x{FF00}-\x{10FFFF}\d`

/** Replaces `\s` and `\S`, which match only ASCII in RE2, with the classes of ECMAScript. */
function withUnicodeSpaces(source: string): string {
  let isClass = false
  return source.replace(/\\[\s\S]|[[\]]/g, (found) => {
    if (found === '[' || found === ']') isClass = found === '['
    if (found !== '\\s' && found !== '\\S') return found
    const signs = found === '\\s' ? spaceClass : nonSpaceClass
    return isClass ? signs : `[${signs}]`
  })
}

/** Whether a pattern is valid. JSON Schema requires Unicode patterns, but many are written in the older syntax. */
const isValidPattern = (source: string): boolean => parses(source, 'u') || parses(source, '')

function parses(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags)
    return true
  } catch {
    return false
  }
}
