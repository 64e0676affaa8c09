import { jsonValue } from '../../json/parse-json.ts'

const contentOpening = /^[ \t\r\n]*\{[ \t\r\n]*"content"[ \t\r\n]*:[ \t\r\n]*"/
/** Stop looking for the beginning of the text after this many characters. */
const maxOpening = 1_024
const completeCharacters = /^(?:[^"\\\0-\x1f]+|\\(?:["\\/bfnrt]|u[\da-f]{4}))*/i
const partialEscape = /^\\(?:u[\da-f]{0,3})?$/i
const highSurrogate = /[\ud800-\udbff]$/

/**
 * Extracts the text from `{"content": "…"}` while it streams, up to the first unexpected character. Returns only text
 * that is certain: all pieces together are always a prefix of the final text. Incomplete escapes and surrogate pairs
 * are held back.
 */
export class ContentReader {
  #state: 'opening' | 'text' | 'over' = 'opening'
  /** What was not read yet: the opening, or an incomplete escape. */
  #unread = ''
  /** The first half of a surrogate pair. */
  #half = ''

  /** Returns the text that this piece adds. */
  push(piece: string): string {
    if (this.#state === 'over') return ''
    this.#unread += piece
    if (this.#state === 'opening') {
      const [head] = contentOpening.exec(this.#unread) ?? []
      if (head === undefined) {
        if (this.#unread.length > maxOpening) this.#state = 'over'
        return ''
      }
      this.#unread = this.#unread.slice(head.length)
      this.#state = 'text'
    }
    const [characters = ''] = completeCharacters.exec(this.#unread) ?? []
    const text = this.#half + jsonValue(`"${characters}"`)
    this.#unread = this.#unread.slice(characters.length)
    if (this.#unread.startsWith('"')) {
      this.#state = 'over'
      return text
    }
    if (this.#unread !== '' && !partialEscape.test(this.#unread)) this.#state = 'over'
    this.#half = highSurrogate.exec(text)?.[0] ?? ''
    return text.slice(0, text.length - this.#half.length)
  }
}
