import { stem } from './stem.ts'

/** Words that say nothing about what a tool does. */
const stopWords: ReadonlySet<string> = new Set(
  (
    'a an and any are as at be been but by can could did do does for from had has have he her his how i if in into is it ' +
    'its just may me might my no not of on or our out please she should so some such than that the their them then there ' +
    'these they this those to too up us was we were what when where which while who will with would you your'
  ).split(' '),
)

/** The longest text that is worth reading word by word: what comes after is no description any more. */
const maxText = 20_000

/** The stems of the words in a text, in order. Names are taken apart: `getUserInfo`, `get_user_info`, `HTTPServer2`. */
export function tokens(text: string): string[] {
  const words = text
    .slice(0, maxText)
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu)
  const found: string[] = []
  for (const word of words ?? []) if (!stopWords.has(word)) found.push(stemOf(word))
  return found
}

const stems = new Map<string, string>()

/** Tools use few different words, many times over. */
function stemOf(word: string): string {
  const known = stems.get(word)
  if (known !== undefined) return known
  if (stems.size >= 20_000) stems.clear()
  const found = stem(word)
  stems.set(word, found)
  return found
}
