/**
 * Characters that a reader does not see, in texts that a model reads: controls, bidirectional controls, zero-width and
 * tag characters. A carriage return counts where it does not end a line, since terminals overwrite what stands before it.
 */
const unseenSource =
  '[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]|\\r(?!\\n)'
const unseen = new RegExp(unseenSource, 'u')

/** Honest uses. */
const honestSources: readonly string[] = [
  // Flags of regions such as Scotland: a black flag, a few tag letters and an end.
  '\\u{1f3f4}[\\u{e0030}-\\u{e0039}\\u{e0061}-\\u{e007a}]{2,6}\\u{e007f}',
  // Joined emoji, and the choice between the coloured and the plain form of a sign.
  '(?<=[\\p{Emoji}\\ufe0f])\\u200d(?=[\\p{Extended_Pictographic}\\u2640\\u2642\\u2695])',
  '(?<=[\\p{Emoji}\\p{S}\\p{Po}])[\\ufe0e\\ufe0f]',
  // Scripts that are written with joiners, and scripts without spaces that mark where a line may break.
  '(?<=[\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Mong}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}])[\\u200c\\u200d]',
  '(?<=[\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Tibt}])[\\u200c\\u200d]',
  '(?<=[\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}])\\u200b',
  // Variants of ideographs and of Mongolian letters, one to each.
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

/** The hidden characters of a text, without honest uses in emoji and in other scripts. */
export function hiddenCharacters(text: string): readonly HiddenCharacter[] {
  // Most texts have none and are done after one look.
  if (!unseen.test(text)) return []
  const marks = rightToLeft.test(text)
  const found: HiddenCharacter[] = []
  for (const { 0: character, 1: honest, index } of text.matchAll(honestOrUnseen)) {
    if (honest === undefined && !(marks && directionMark.test(character))) found.push({ character, at: index })
  }
  return found
}

/** Commands to a terminal: colours, moves of the cursor, titles. */
const terminal = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g

/** A text without its hidden characters. Carriage returns that end no line become line ends; with `plain` all do. */
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

/** A text in which whatever moves the cursor, hides or turns text around is spelt out as `\u{…}`, for people to see. */
export const speltOut = (text: string): string =>
  text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  )
