import { escapeCharacter } from './hidden-characters.ts'

/** Pairs of a letter, mostly Cyrillic or Greek, and the Latin letter that it looks like. */
const pairs =
  'аaвbеeкkмmнhоoрpсcтtуyхxіiјjѕsԁdԛqԝwһhӏlґrёeїiАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅSαaοoρpνvιiκkυuτtεeηnχxγyωwΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXɑaɡgıiʟlոnսuօoցgհhյj'

const letters = [...pairs]
const table = new Map<string, string>()
for (let at = 0; at < letters.length; at += 2) table.set(letters[at] as string, letters[at + 1] as string)

export const lookalikes = new RegExp(`[${[...table.keys()].join('')}]`, 'u')

export const latinFor = (word: string): string => [...word].map((letter) => table.get(letter) ?? letter).join('')

/** A text with its letters that look like Latin ones, but are not, as `\u{…}`. */
export const spellLookalikes = (text: string): string =>
  [...text].map((letter) => (table.has(letter) ? escapeCharacter(letter) : letter)).join('')

const invisible = /[\p{Cf}\p{Mn}\p{Default_Ignorable_Code_Point}]/gu

/** A name as people and lenient parsers read it: NFKD, no invisible characters, Latin letters for look-alikes. */
export const readAs = (name: string): string =>
  /^[\x21-\x7e]*$/.test(name) ? name : latinFor(name.normalize('NFKD').replace(invisible, '')).trim()

/** Characters and pairs of characters that look alike, replaced in this order. */
const drawnAlike: readonly (readonly [RegExp, string])[] = [
  [/[iI|1]/g, 'l'],
  [/5/g, 's'],
  [/[0O]/g, 'o'],
  [/rn/gi, 'm'],
  [/vv/gi, 'w'],
  [/cl/gi, 'd'],
]
const separators = /[\s._/:-]+/g

/** A name without separators, ignoring case: `readFile`, `read_file` and `read-file` become equal. */
export const spellingOf = (name: string): string => name.normalize('NFC').replace(separators, '').toLowerCase()

/** The skeleton of a name. Names that look alike at a glance have the same skeleton. */
export const skeletonOf = (name: string): string =>
  drawnAlike.reduce((text, [drawn, as]) => text.replace(drawn, as), readAs(name).replace(separators, '')).toLowerCase()

const ascii = /^[!-~]*$/
const unseen = /[\p{M}\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\s]/gu

/**
 * A name as the most lenient parser might compare it: ignores compatibility forms (full-width letters, ſ, the Kelvin
 * sign), white space, invisible characters, accents and case.
 */
export function foldName(name: string): string {
  if (ascii.test(name)) return name.toLowerCase()
  // Convert to upper case first: ı is already lower case, but its upper case is the same as that of i.
  return name.normalize('NFKD').replace(unseen, '').toUpperCase().toLowerCase().normalize('NFKD').replace(unseen, '')
}
