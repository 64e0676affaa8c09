import { shortEscapes } from '../repair/scan.ts'

/** Reads the text in `{"content": "…"}` while it is being written. */
export interface ContentReader {
  /** What another piece of the JSON adds to the text. */
  push(piece: string): string
}

type State = 'before object' | 'before key' | 'key' | 'before colon' | 'before value' | 'text' | 'over'

const key = '"content"'

/**
 * Gives the text of the first member, if that is `content`, as far as it is certain; from the first character that is
 * no JSON, or not the JSON that was asked for, nothing more. Whoever reads the whole in the end finds what it has given
 * at the beginning of the text. Half an escape and half a pair of surrogates are kept back until the other half comes.
 */
export function createContentReader(): ContentReader {
  let state: State = 'before object'
  let seenOfKey = 0
  let begun = ''
  let half = ''

  /** The text that one more character of the string makes certain. */
  const read = (character: string): string => {
    if (begun !== '') return complete(character)
    if (character === '\\') {
      begun = character
      return ''
    }
    if (character === '"') {
      state = 'over'
      return paired('')
    }
    // Only an escape may stand for a control character: what is meant by a bare one is not certain.
    if (character < ' ') return stop()
    return paired(character)
  }

  const complete = (character: string): string => {
    begun += character
    if (begun.length === 2) {
      if (character === 'u') return ''
      const meant = shortEscapes[character]
      if (meant === undefined) return stop()
      begun = ''
      return paired(meant)
    }
    if (!/[\da-f]/i.test(character)) return stop()
    if (begun.length < 6) return ''
    const unit = String.fromCharCode(Number.parseInt(begun.slice(2), 16))
    begun = ''
    return paired(unit)
  }

  /** A high surrogate waits for what comes next. */
  const paired = (unit: string): string => {
    const certain = half + unit
    half = ''
    if (!/[\ud800-\udbff]$/.test(unit)) return certain
    half = unit
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

  /** Everything in front of the text. */
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
    push(piece) {
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
