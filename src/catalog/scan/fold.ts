import { latinFor, lookalikes } from '../../lib/lookalikes.ts'

const ignorable = /\p{Default_Ignorable_Code_Point}|[\0-\x08\x0e-\x1f\x7f-\x9f]/gu
const ascii = /^[\x00-\x7f]*$/
const words = /[\p{L}\p{M}]+/gu
const latin = /\p{sc=Latn}/u

/** A text as it reads once its disguise is off: compatible forms made plain, nothing hidden, look-alikes as Latin, in lower case. */
export function fold(text: string): string {
  if (ascii.test(text)) return text.toLowerCase()
  return unmixed(text.normalize('NFKC').replace(ignorable, ''))
    .replace(/[\u2018\u2019\u201b\u2032]/g, "'")
    .toLowerCase()
}

/** A word that mixes Latin letters with others that look like Latin ones. */
export function mixedWord(text: string): { readonly word: string; readonly at: number } | undefined {
  if (ascii.test(text) || !lookalikes.test(text)) return undefined
  for (const { 0: word, index } of text.matchAll(words)) {
    if (isMixed(word)) return { word, at: index }
  }
  return undefined
}

const isMixed = (word: string): boolean => word.length > 2 && lookalikes.test(word) && latin.test(word)

// Only in mixed words, so that honest Cyrillic and Greek stay what they are.
const unmixed = (text: string): string =>
  lookalikes.test(text) ? text.replace(words, (word) => (isMixed(word) ? latinFor(word) : word)) : text

const digits: Readonly<Record<string, string>> = {
  0: 'o',
  1: 'i',
  3: 'e',
  4: 'a',
  5: 's',
  7: 't',
  8: 'b',
  '@': 'a',
  $: 's',
  '!': 'i',
}
const marked = /(?<![a-z0-9@$!.:/_-])[a-z0-9@$!]{2,24}(?![a-z0-9@$!_/-])/g
const leet = /^(?=.*[a-z]).*[0134578@$]/
const apart = /(?<![a-z0-9])[a-z](?:[ .\-_*]{1,4}[a-z](?![a-z0-9])){5,}/g

/** Other readings of a folded text: digits in the place of letters, letters drawn apart. None for most texts. */
export function readings(folded: string): string[] {
  const others: string[] = []
  const unleet = folded.replace(marked, (word) =>
    leet.test(word) ? word.replace(/[0134578@$!]/g, (sign) => digits[sign] as string) : word,
  )
  if (unleet !== folded) others.push(unleet)
  const together = joined(folded)
  if (together !== folded) others.push(together)
  return others
}

/** Letters drawn apart, put together again. With another sign between the letters spaces part words, else two spaces do. */
const joined = (folded: string): string =>
  folded.replace(apart, (run) =>
    /[.\-_*]/.test(run) ? run.replace(/[.\-_*]/g, '') : run.replace(/ (?! )(?<! {2})/g, '').replace(/ {2,}/g, ' '),
  )
