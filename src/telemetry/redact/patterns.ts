import { createFinder } from './finder.ts'
import { redacted } from './known.ts'

interface Pattern {
  /** Texts of which one must be there; looking for them is much cheaper than the expression. */
  readonly hints: readonly string[]
  /**
   * Linear: every repetition is of one class, and either bounded or such that no second start lies inside it.
   * The only group, if there is one, stays.
   */
  readonly find: RegExp
  /** Whether what was found is one; always, if absent. */
  readonly sure?: (credential: string) => boolean
}

/** A token starts where a word does; an escaped space before it looks like `%20` or `\n`. */
const start = '(?:(?<![A-Za-z0-9_-])|(?<=%[0-9A-Fa-f]{2})|(?<=\\\\[nrt]))'
const token = (prefix: string, rest: string) => new RegExp(`${start}${prefix}${rest}`, 'g')
/** Words with hyphens are not keys: those have a digit early on. */
const withDigit = '(?=[A-Za-z_-]{0,48}[0-9])[A-Za-z0-9_-]'

/** Credentials that show what they are by their form. */
const patterns: readonly Pattern[] = [
  {
    hints: ['earer', 'EARER'],
    find: /(\bbearer(?: |%20|\+|\t){1,4})(?=[A-Za-z._~+/-]{0,64}[0-9])[\w.~+/-]{8,}={0,2}/gi,
  },
  {
    hints: ['asic', 'ASIC'],
    find: /(\bbasic(?: |%20|\+|\t){1,4})[A-Za-z0-9+/_-]{6,}={0,2}/gi,
    sure: (credential) => Buffer.from(credential, 'base64').includes(':'),
  },
  { hints: ['eyJ'], find: token('eyJ', '[\\w-]{8,}\\.[\\w-]{2,}(?:\\.[\\w-]*){1,3}') },
  { hints: ['://'], find: /(:\/\/[^\s/?#@:"'<>]{0,256}:)[^\s/?#"'<>]+(?=@)/g },
  { hints: ['AKIA', 'ASIA', 'ABIA', 'ACCA'], find: token('A(?:KIA|SIA|BIA|CCA)', '[A-Z0-9]{16}(?![A-Za-z0-9])') },
  { hints: ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'], find: token('gh[pousr]_', '[A-Za-z0-9]{20,}') },
  { hints: ['github_pat_'], find: token('github_pat_', '\\w{20,}') },
  { hints: ['glpat-'], find: token('glpat-', '[\\w-]{16,}') },
  { hints: ['xox', 'xapp-'], find: token('(?:xox[a-z]|xapp)', '-[A-Za-z0-9-]{10,}') },
  { hints: ['hooks.slack.com/'], find: /(hooks\.slack\.com\/[a-z]{1,16}\/)[\w/-]{8,}/g },
  { hints: ['_live_', '_test_', 'whsec_'], find: token('(?:[prs]k_(?:live|test)|whsec)_', '[A-Za-z0-9]{10,}') },
  { hints: ['sk-'], find: token('sk-', `${withDigit}{20,}`) },
  { hints: ['AIza'], find: token('AIza', '[\\w-]{30,}') },
  { hints: ['ya29.'], find: token('ya29\\.', '[\\w-]{20,}') },
  { hints: ['npm_'], find: token('npm_', '[A-Za-z0-9]{30,}') },
  { hints: ['pypi-'], find: token('pypi-', `${withDigit}{40,}`) },
  { hints: ['hf_'], find: token('hf_', '[A-Za-z0-9]{30,}') },
  { hints: ['SG.'], find: token('SG\\.', '[\\w-]{16,}\\.[\\w-]{16,}') },
  { hints: ['tw_', 'twk_'], find: token('twk?_', `${withDigit}{16,}`) },
]

const findHint = createFinder(
  [...patterns.flatMap(({ hints }) => hints), 'PRIVATE KEY'].map((hint) => ({ text: hint })),
)

/** Takes out whatever looks like a well-known kind of credential. */
export function concealPatterns(text: string): string {
  if (text.length < shortest || !mayHold(text)) return text
  let result = concealPrivateKeys(text)
  for (const { hints, find, sure } of patterns) {
    if (!hints.some((hint) => result.includes(hint))) continue
    result = result.replace(find, (found: string, kept: unknown) => {
      const before = typeof kept === 'string' ? kept : ''
      return sure && !sure(found.slice(before.length)) ? found : before + redacted
    })
  }
  return result
}

/** `://:x@h` */
const shortest = 7

/** One pass for all hints: most texts have none. */
function mayHold(text: string): boolean {
  let found = false
  findHint(text, () => {
    found = true
  })
  return found
}

/** By hand: an expression would look for the end anew from each beginning. */
function concealPrivateKeys(text: string): string {
  const begin = /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----/g
  const end = /-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----/g
  let result = ''
  let done = 0
  for (let found = begin.exec(text); found; found = begin.exec(text)) {
    result += text.slice(done, found.index) + redacted
    end.lastIndex = begin.lastIndex
    // A key that is cut off is one all the same.
    done = end.exec(text) ? end.lastIndex : text.length
    begin.lastIndex = done
  }
  return result + text.slice(done)
}
