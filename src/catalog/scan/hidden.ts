import { hiddenCharacters } from '../../lib/hidden-characters.ts'
import type { Finding, FindingKind } from './finding.ts'
import { excerptOf } from './visible.ts'

interface Place {
  readonly at: number
  count: number
  insideWord: boolean
}

/** Characters of a text that hide something from its reader. Honest uses in emoji and in other scripts are none. */
export function hiddenIn(text: string, where: string): Finding[] {
  const places = new Map<FindingKind, Place>()
  for (const { character, at } of hiddenCharacters(text)) {
    const kind = kindOf(character.codePointAt(0) as number)
    const place = places.get(kind) ?? { at, count: 0, insideWord: false }
    place.count++
    place.insideWord ||= isInsideWord(text, at, at + character.length)
    places.set(kind, place)
  }
  return [...places].map(([kind, place]) => {
    // One that stands alone between words is often left over from a word processor or from the start of a file.
    const leftover = kind === 'hidden-character' && place.count === 1 && !place.insideWord
    return { kind, severity: leftover ? 'low' : 'high', where, excerpt: excerptOf(text, place.at, 1) }
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
