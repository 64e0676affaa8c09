/** Cyrillic and Greek letters (and a few more) that are drawn like a Latin one. */
const pairs =
  'аaвbеeкkмmнhоoрpсcтtуyхxіiјjѕsԁdԛqԝwһhӏlґrёeїiАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅSαaοoρpνvιiκkυuτtεeηnχxγyωwΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXɑaɡgıiʟlոnսuօoցgհhյj'

const letters = [...pairs]
const table = new Map<string, string>()
for (let at = 0; at < letters.length; at += 2) table.set(letters[at] as string, letters[at + 1] as string)

/** Whether a text has a letter that passes for a Latin one. */
export const lookalikes = new RegExp(`[${[...table.keys()].join('')}]`, 'u')

/** The Latin word that a reader takes this one for. */
export const latinFor = (word: string): string => [...word].map((letter) => table.get(letter) ?? letter).join('')

const invisible = /[\p{Cf}\p{Mn}\p{Default_Ignorable_Code_Point}]/gu

/** A name as a reader or a lenient parser takes it: compatible forms made plain, nothing invisible, look-alikes as Latin. */
export const readAs = (name: string): string =>
  /^[\x21-\x7e]*$/.test(name) ? name : latinFor(name.normalize('NFKD').replace(invisible, '')).trim()

/** Letters and pairs of letters that are drawn alike, in this order. */
const drawnAlike: readonly (readonly [RegExp, string])[] = [
  [/[iI|1]/g, 'l'],
  [/5/g, 's'],
  [/[0O]/g, 'o'],
  [/rn/gi, 'm'],
  [/vv/gi, 'w'],
  [/cl/gi, 'd'],
]
const separators = /[\s._/:-]+/g

/** How a name is spelt, whatever its case and separators: `readFile`, `read_file` and `read-file` are one. */
export const spellingOf = (name: string): string => name.normalize('NFC').replace(separators, '').toLowerCase()

/** What a name looks like at a glance: two that look alike have the same skeleton. */
export const skeletonOf = (name: string): string =>
  drawnAlike.reduce((text, [drawn, as]) => text.replace(drawn, as), readAs(name).replace(separators, '')).toLowerCase()

const ascii = /^[!-~]*$/
const unseen = /[\p{M}\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\s]/gu

/**
 * A name as the least strict parser might compare it: compatibility forms (full-width letters, ſ, the Kelvin sign),
 * white space, invisible characters, accents and letter case do not count.
 */
export function foldName(name: string): string {
  if (ascii.test(name)) return name.toLowerCase()
  // Upper case first: ı has no lower case but shares its upper case with i.
  return name.normalize('NFKD').replace(unseen, '').toUpperCase().toLowerCase().normalize('NFKD').replace(unseen, '')
}
