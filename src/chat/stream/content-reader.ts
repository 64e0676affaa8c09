import { shortEscapes } from '../repair/scan.ts'

type State = 'before object' | 'before key' | 'key' | 'before colon' | 'before value' | 'text' | 'over'

const key = '"content"'

/**
 * Extracts the text from `{"content": "…"}` while it streams, up to the first unexpected character. Returns only text
 * that is certain: all pieces together are always a prefix of the final text. Incomplete escapes and surrogate pairs
 * are held back.
 */
export function createContentReader() {
  let state: State = 'before object'
  let seenOfKey = 0
  let partialEscape = ''
  let highSurrogate = ''

  const read = (character: string): string => {
    if (partialEscape !== '') return complete(character)
    if (character === '\\') {
      partialEscape = character
      return ''
    }
    if (character === '"') {
      state = 'over'
      return paired('')
    }
    // Stop at a raw control character, which is invalid in JSON.
    if (character < ' ') return stop()
    return paired(character)
  }

  const complete = (character: string): string => {
    partialEscape += character
    if (partialEscape.length === 2) {
      if (character === 'u') return ''
      const decoded = shortEscapes[character]
      if (decoded === undefined) return stop()
      partialEscape = ''
      return paired(decoded)
    }
    if (!/[\da-f]/i.test(character)) return stop()
    if (partialEscape.length < 6) return ''
    const unit = String.fromCharCode(Number.parseInt(partialEscape.slice(2), 16))
    partialEscape = ''
    return paired(unit)
  }

  /** Holds back a high surrogate until the next UTF-16 unit arrives. */
  const paired = (unit: string): string => {
    const certain = highSurrogate + unit
    highSurrogate = ''
    if (!/[\ud800-\udbff]$/.test(unit)) return certain
    highSurrogate = unit
    return certain.slice(0, -1)
  }

  const stop = (): string => {
    state = 'over'
    return ''
  }

  const expect = (character: string, wanted: string, next: State): void => {
    if (character === wanted) state = next
    else if (!/[ \t\r\n]/.test(character)) state = 'over'
  }

  /** Parses everything before the text. */
  const advance = (character: string): void => {
    if (state === 'before object') expect(character, '{', 'before key')
    else if (state === 'before key') {
      expect(character, '"', 'key')
      seenOfKey = 1
    } else if (state === 'key') {
      if (character !== key[seenOfKey]) state = 'over'
      else if (++seenOfKey === key.length) state = 'before colon'
    } else if (state === 'before colon') expect(character, ':', 'before value')
    else expect(character, '"', 'text')
  }

  return {
    /** Returns the text that this piece adds. */
    push(piece: string): string {
      let text = ''
      for (let at = 0; at < piece.length && state !== 'over'; at++) {
        const character = piece[at] as string
        if (state === 'text') text += read(character)
        else advance(character)
      }
      return text
    },
  }
}
