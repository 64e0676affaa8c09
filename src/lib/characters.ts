/**
 * Invisible characters in text for a model: controls, bidirectional controls, zero-width and tag characters. Includes a
 * carriage return that does not end a line, because terminals then overwrite the text before it.
 */
const unseenSource =
  '[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]|\\r(?!\\n)'
const unseen = new RegExp(unseenSource, 'u')

/** Legitimate uses of invisible characters. */
const honestSources: readonly string[] = [
  // Regional flags such as Scotland's: a black flag, a few tag letters and an end tag.
  '\\u{1f3f4}[\\u{e0030}-\\u{e0039}\\u{e0061}-\\u{e007a}]{2,6}\\u{e007f}',
  // Emoji sequences with joiners, and variation selectors for emoji or text style.
  '(?<=[\\p{Emoji}\\ufe0f])\\u200d(?=[\\p{Extended_Pictographic}\\u2640\\u2642\\u2695])',
  '(?<=[\\p{Emoji}\\p{S}\\p{Po}])[\\ufe0e\\ufe0f]',
  // Scripts that use joiners, and scripts without spaces, where invisible characters mark possible line breaks.
  '(?<=[\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Mong}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}])[\\u200c\\u200d]',
  '(?<=[\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Tibt}])[\\u200c\\u200d]',
  '(?<=[\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}])\\u200b',
  // One variation selector per ideograph or Mongolian letter.
  '(?<=\\p{Ideographic})[\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}]|(?<=\\p{scx=Mong})[\\u180b-\\u180f]',
]
const honestOrUnseen = new RegExp(`(${honestSources.join('|')})|${unseenSource}`, 'gu')
const rightToLeft = /(?=\p{L})[\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}]/u
const directionMark = /^[\u200e\u200f\u061c]$/
const everyLineEnd = /\r\n?|[\u2028\u2029]/g
const loneReturns = /\r(?!\n)/g
const anyLineEnd = /[\r\u2028\u2029]/

export interface HiddenCharacter {
  readonly character: string
  readonly at: number
}

/** Finds the hidden characters in text, except for legitimate uses in emoji and scripts. */
export function hiddenCharacters(text: string): readonly HiddenCharacter[] {
  // Fast path: most text has no invisible characters.
  if (!unseen.test(text)) return []
  const marks = rightToLeft.test(text)
  const found: HiddenCharacter[] = []
  for (const { 0: character, 1: honest, index } of text.matchAll(honestOrUnseen)) {
    if (honest === undefined && !(marks && directionMark.test(character))) found.push({ character, at: index })
  }
  return found
}

/** Terminal escape sequences: colours, cursor movements, titles. */
const terminal = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g

/**
 * Removes hidden characters. Lone carriage returns become line feeds; with `plain`, so do all other line ends. Keep them in
 * text that may be JSON: a string can contain U+2028, but not a line feed.
 */
export function withoutHidden(text: string, lineEnds: 'plain' | 'kept' = 'plain'): string {
  let lines = text
  if (anyLineEnd.test(text)) lines = text.replace(lineEnds === 'plain' ? everyLineEnd : loneReturns, '\n')
  if (!unseen.test(lines)) return lines
  lines = lines.replace(terminal, '')
  const marks = rightToLeft.test(lines)
  return lines.replace(honestOrUnseen, (character, honest) =>
    honest !== undefined || (marks && directionMark.test(character)) ? character : '',
  )
}

/** A character as `\u{…}`. */
export const escapeCharacter = (character: string): string =>
  `\\u{${(character.codePointAt(0) as number).toString(16)}}`

/** Spells out control, format and separator characters as `\u{…}`, so that they become visible. */
export const speltOut = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeCharacter)

/** Pairs of a letter, mostly Cyrillic or Greek, and the Latin letter that it looks like. */
const lookalikeLetters =
  'аaвbеeкkмmнhоoрpсcтtуyхxіiјjѕsԁdԛqԝwһhӏlґrёeїiАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅSαaοoρpνvιiκkυuτtεeηnχxγyωwΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXɑaɡgıiʟlոnսuօoցgհhյj'

const lookalikePairs = [...lookalikeLetters]
const latinLetters = new Map<string, string>()
for (let at = 0; at < lookalikePairs.length; at += 2)
  latinLetters.set(lookalikePairs[at] as string, lookalikePairs[at + 1] as string)

export const lookalikes = new RegExp(`[${[...latinLetters.keys()].join('')}]`, 'u')

export const latinFor = (word: string): string => [...word].map((letter) => latinLetters.get(letter) ?? letter).join('')

/** A text with its letters that look like Latin ones, but are not, as `\u{…}`. */
export const spellLookalikes = (text: string): string =>
  [...text].map((letter) => (latinLetters.has(letter) ? escapeCharacter(letter) : letter)).join('')

const invisibleMarks = /[\p{Cf}\p{Mn}\p{Default_Ignorable_Code_Point}]/gu

/** A name as people and lenient parsers read it: NFKD, no invisible characters, Latin letters for look-alikes. */
export const readAs = (name: string): string =>
  /^[\x21-\x7e]*$/.test(name) ? name : latinFor(name.normalize('NFKD').replace(invisibleMarks, '')).trim()

/** Characters and pairs of characters that look alike, replaced in this order. */
const drawnAlike: readonly (readonly [RegExp, string])[] = [
  [/[iI|1]/g, 'l'],
  [/5/g, 's'],
  [/[0O]/g, 'o'],
  [/rn/gi, 'm'],
  [/vv/gi, 'w'],
  [/cl/gi, 'd'],
]
const nameSeparator = /[\s._/:-]+/g

/** A name without separators, ignoring case: `readFile`, `read_file` and `read-file` become equal. */
export const spellingOf = (name: string): string => name.normalize('NFC').replace(nameSeparator, '').toLowerCase()

/** The skeleton of a name. Names that look alike at a glance have the same skeleton. */
export const skeletonOf = (name: string): string =>
  drawnAlike
    .reduce((text, [drawn, as]) => text.replace(drawn, as), readAs(name).replace(nameSeparator, ''))
    .toLowerCase()

const asciiName = /^[!-~]*$/
const ignoredInNames = /[\p{M}\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\s]/gu

/**
 * A name as the most lenient parser might compare it: ignores compatibility forms (full-width letters, ſ, the Kelvin
 * sign), white space, invisible characters, accents and case.
 */
export function foldName(name: string): string {
  if (asciiName.test(name)) return name.toLowerCase()
  // Convert to upper case first: ı is already lower case, but its upper case is the same as that of i.
  return name
    .normalize('NFKD')
    .replace(ignoredInNames, '')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replace(ignoredInNames, '')
}
