import { memoize } from '../../lib/memoize.ts'

const stopWords: ReadonlySet<string> = new Set(
  (
    'a an and any are as at be been but by can could did do does for from had has have he her his how i if in into is it ' +
    'its just may me might my no not of on or our out please she should so some such than that the their them then there ' +
    'these they this those to too up us was we were what when where which while who will with would you your'
  ).split(' '),
)

const maxIndexedText = 20_000

/**
 * The stems of a string's words, in order. Splits names such as `getUserInfo`, `get_user_info` and `HTTPServer2`.
 * Text in scripts without spaces between words, such as Chinese, becomes pairs of neighbouring characters.
 */
export function tokens(text: string): string[] {
  const words = withoutAccents(text.slice(0, maxIndexedText))
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu)
  const found: string[] = []
  for (const word of words ?? []) {
    if (unspacedScript.test(word)) found.push(...pairsOf(word))
    else if (!stopWords.has(word)) found.push(stemWord(word))
  }
  return found
}

const isAsciiText = (text: string): boolean => /^[\x00-\x7f]*$/.test(text)

/** Makes words with and without accents equal, and different encodings of the same text. */
const withoutAccents = (text: string): string =>
  isAsciiText(text)
    ? text
    : text
        .normalize('NFKD')
        .replace(/[\u0300-\u036f]/g, '')
        .normalize('NFC')

/** Scripts that are written without spaces between words, and Hangul, where particles are attached to words. */
const scripts = ['Han', 'Hiragana', 'Katakana', 'Bopomofo', 'Hangul', 'Thai', 'Lao', 'Khmer', 'Myanmar']
const unspacedScript = new RegExp(`[${scripts.map((script) => `\\p{scx=${script}}`).join('')}]+`, 'u')
const splitUnspaced = new RegExp(`(${unspacedScript.source})`, 'u')

/** The words of a string that is partly in such scripts: for these parts, all pairs of neighbouring characters. */
function pairsOf(word: string): string[] {
  return word.split(splitUnspaced).flatMap((part, index) => {
    if (index % 2 === 0) return part === '' || stopWords.has(part) ? [] : [stemWord(part)]
    const characters = Array.from(part)
    return characters.length === 1 ? characters : characters.slice(1).map((next, at) => `${characters[at]}${next}`)
  })
}

/** Returns a word's stem. Stems are cached, because tools keep using the same few words. */
const stemWord = memoize(stem, 20_000, Number.POSITIVE_INFINITY)

/**
 * The stem of a lower-case English word by the Porter2 rules: `calculating`, `calculated` and `calculation` have the
 * same stem. R1 and R2 are the parts after the first and the second vowel-consonant run; most suffixes are removed only
 * there.
 */
export function stem(word: string): string {
  if (word.length <= 2 || !/^[a-z]+$/.test(word)) return word
  const fixed = exceptions.get(word)
  if (fixed !== undefined) return fixed
  let text = consonantY(word)
  const r1 = regionAfter(text, 0, prefixes.find((prefix) => text.startsWith(prefix))?.length)
  const r2 = regionAfter(text, r1)
  text = plural(text)
  if (falseInflections.has(text)) return text.toLowerCase()
  text = pastOrProgressive(text, r1)
  text = finalY(text)
  text = applyRules(furtherRules, applyRules(longRules, text, r1, r2), r1, r2)
  text = applyRules(residualRules, text, r2, r2)
  return finalE(text, r1, r2).toLowerCase()
}

const vowels = 'aeiouy'
const isVowel = (letter: string | undefined): boolean => letter !== undefined && vowels.includes(letter)

/** Prefixes after which R1 starts, so that `generate` and `general` keep different stems. */
const prefixes: readonly string[] = ['gener', 'commun', 'arsen']

const exceptions = new Map([
  ...suffixTable(
    'skis:ski skies:sky dying:die lying:lie tying:tie idly:idl gently:gentl ugly:ugli early:earli only:onli',
  ),
  ...suffixTable('singly:singl sky:sky news:news howe:howe atlas:atlas cosmos:cosmos bias:bias andes:andes'),
])

/** Words that look inflected once a plural ending is removed, but are not. */
const falseInflections: ReadonlySet<string> = new Set(
  'inning outing canning herring earring proceed exceed succeed'.split(' '),
)

/** Writes a `y` that is a consonant (at the start of a word or after a vowel) as `Y`. */
function consonantY(word: string): string {
  let text = ''
  for (const letter of word) text += letter === 'y' && (text === '' || isVowel(text.at(-1))) ? 'Y' : letter
  return text
}

function regionAfter(text: string, from: number, known?: number): number {
  if (known !== undefined) return known
  for (let at = from + 1; at < text.length; at++) if (!isVowel(text[at]) && isVowel(text[at - 1])) return at + 1
  return text.length
}

const hasVowel = (text: string): boolean => /[aeiouy]/.test(text)

/** Whether a string ends with a vowel between consonants, or is a two-letter word that starts with a vowel. */
const endsInShortSyllable = (text: string): boolean =>
  /[^aeiouy][aeiouy][^aeiouywxY]$/.test(text) || /^[aeiouy][^aeiouy]$/.test(text)

const isShort = (text: string, r1: number): boolean => r1 >= text.length && endsInShortSyllable(text)

function plural(text: string): string {
  if (text.endsWith('sses')) return text.slice(0, -2)
  if (text.endsWith('ied') || text.endsWith('ies')) return text.slice(0, text.length > 4 ? -2 : -1)
  if (text.endsWith('us') || text.endsWith('ss') || !text.endsWith('s')) return text
  return hasVowel(text.slice(0, -2)) ? text.slice(0, -1) : text
}

function pastOrProgressive(text: string, r1: number): string {
  const agreed = /(?:eedly|eed)$/.exec(text)
  if (agreed) return agreed.index >= r1 ? `${text.slice(0, agreed.index)}ee` : text
  const ending = /(?:ingly|edly|ing|ed)$/.exec(text)
  if (!ending || !hasVowel(text.slice(0, ending.index))) return text
  const rest = text.slice(0, ending.index)
  if (/(?:at|bl|iz)$/.test(rest)) return `${rest}e`
  if (/(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(rest)) return rest.slice(0, -1)
  return isShort(rest, r1) ? `${rest}e` : rest
}

const finalY = (text: string): string =>
  text.length > 2 && /[^aeiouy][yY]$/.test(text) ? `${text.slice(0, -1)}i` : text

type SuffixRule = readonly [suffix: string, replacement: string, condition?: 'r2' | RegExp]

/** Suffix rules, longest suffix first, because only the first matching suffix is tried. */
const longRules: readonly SuffixRule[] = [
  ...suffixTable(
    'ational:ate ization:ize fulness:ful ousness:ous iveness:ive tional:tion biliti:ble lessli:less entli:ent',
  ),
  ...suffixTable('ation:ate alism:al aliti:al ousli:ous iviti:ive fulli:ful enci:ence anci:ance abli:able izer:ize'),
  ...suffixTable('ator:ate alli:al bli:ble'),
  ['ogi', 'og', /l$/],
  ['li', '', /[cdeghkmnrt]$/],
]

const furtherRules: readonly SuffixRule[] = [
  ...suffixTable('ational:ate tional:tion alize:al icate:ic iciti:ic'),
  ['ative', '', 'r2'],
  ...suffixTable('ical:ic ness: ful:'),
]

const residualRules: readonly SuffixRule[] = [
  ...suffixTable('ement: ance: ence: able: ible: ment: ant: ent: ism: ate: iti: ous: ive: ize:'),
  ['ion', '', /[st]$/],
  ...suffixTable('al: er: ic:'),
]

/** Parses pairs written as `from:to`. */
function suffixTable(pairs: string): readonly [from: string, to: string][] {
  return pairs.split(' ').map((pair) => pair.split(':') as [string, string])
}

function applyRules(rules: readonly SuffixRule[], text: string, region: number, r2: number): string {
  const rule = rules.find(([suffix]) => text.endsWith(suffix))
  if (!rule) return text
  const [suffix, replacement, condition] = rule
  const start = text.length - suffix.length
  const rest = text.slice(0, start)
  const fits = condition === 'r2' ? start >= r2 : condition === undefined || condition.test(rest)
  return start >= region && fits ? rest + replacement : text
}

function finalE(text: string, r1: number, r2: number): string {
  const start = text.length - 1
  if (text.endsWith('e')) {
    return start >= r2 || (start >= r1 && !endsInShortSyllable(text.slice(0, -1))) ? text.slice(0, -1) : text
  }
  return text.endsWith('ll') && start >= r2 ? text.slice(0, -1) : text
}
