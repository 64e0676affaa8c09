import type { Finding, FindingKind } from './finding.ts'
import { excerptOf } from './visible.ts'

/** Anything at all that a reader would not see; most texts have none of it and are done after one look. */
const unseen =
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: joiners and selectors are looked for one by one
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u
const everyUnseen = new RegExp(unseen, 'gu')

const honest: readonly RegExp[] = [
  // Flags of regions such as Scotland: a black flag, a few tag letters and an end.
  /\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{2,6}\u{e007f}/gu,
  // Joined emoji, and the choice between the coloured and the plain form of a sign.
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: as above
  /(?<=[\p{Emoji}\ufe0f])\u200d(?=[\p{Extended_Pictographic}\u2640\u2642\u2695])/gu,
  /(?<=[\p{Emoji}\p{S}\p{Po}])[\ufe0e\ufe0f]/gu,
  // Scripts that are written with joiners, and scripts without spaces that mark where a line may break.
  /(?<=[\p{scx=Arab}\p{scx=Syrc}\p{scx=Mong}\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}])[\u200c\u200d]/gu,
  /(?<=[\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Tibt}])[\u200c\u200d]/gu,
  /(?<=[\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}])\u200b/gu,
  // Variants of ideographs and of Mongolian letters, one to each.
  /(?<=\p{Ideographic})[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|(?<=\p{scx=Mong})[\u180b-\u180f]/gu,
]
const rightToLeft = /[\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}]/u
const directionMarks = /[\u200e\u200f\u061c]/gu

interface Place {
  readonly at: number
  count: number
  insideWord: boolean
}

/** Characters of a text that hide something from its reader. Honest uses in emoji and in other scripts are none. */
export function hiddenIn(text: string, where: string): Finding[] {
  if (!unseen.test(text)) return []
  let rest = honest.reduce((left, pattern) => left.replace(pattern, ''), text)
  if (rightToLeft.test(rest)) rest = rest.replace(directionMarks, '')
  const places = new Map<FindingKind, Place>()
  for (const { 0: character, index } of rest.matchAll(everyUnseen)) {
    const kind = kindOf(character.codePointAt(0) as number)
    const place = places.get(kind) ?? { at: index, count: 0, insideWord: false }
    place.count++
    place.insideWord ||= isInsideWord(rest, index, index + character.length)
    places.set(kind, place)
  }
  return [...places].map(([kind, place]) => {
    // One that stands alone between words is often left over from a word processor or from the start of a file.
    const leftover = kind === 'hidden-character' && place.count === 1 && !place.insideWord
    return { kind, severity: leftover ? 'low' : 'high', where, excerpt: excerptOf(rest, place.at, 1) }
  })
}

function kindOf(point: number): FindingKind {
  if (point < 0xa0 && point !== 0xad) return 'escape'
  if (point >= 0xe0000 && point <= 0xe007f) return 'tag-characters'
  return (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ? 'bidi' : 'hidden-character'
}

const letterBefore = /\p{L}$/u
const letterAfter = /^\p{L}/u

const isInsideWord = (text: string, from: number, to: number): boolean =>
  letterBefore.test(text.slice(Math.max(0, from - 2), from)) && letterAfter.test(text.slice(to, to + 2))
