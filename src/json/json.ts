import { countMembers, elements, extentOf, maxDepth, members } from './json-text.ts'
import { exactValue, jsonValue } from './parse-json.ts'

/** A JSON value as bytes, as a parsed value, or both. Converted lazily, so pass-through data is never parsed. */
export class Json<T = unknown> {
  #value: T | undefined
  #bytes: Buffer | undefined
  #parsed: boolean
  /** Whether the bytes came from outside and may contain more detail than the value, such as more digits. */
  readonly #received: boolean
  #exact: T | undefined

  private constructor(value: T | undefined, bytes: Buffer | undefined, parsed: boolean) {
    this.#value = value
    this.#bytes = bytes
    this.#parsed = parsed
    this.#received = bytes !== undefined
  }

  static of<T>(value: T): Json<T> {
    return new Json<T>(value, undefined, true)
  }

  /** Wraps bytes that the caller has validated as one complete JSON value. */
  static raw<T = unknown>(bytes: Buffer): Json<T> {
    return new Json<T>(undefined, bytes, false)
  }

  /** Wraps bytes with their parsed value. `exact` means that no number was rounded in parsing. */
  static read<T>(value: T, bytes: Buffer, exact = false): Json<T> {
    const json = new Json<T>(value, bytes, true)
    if (exact) json.#exact = value
    return json
  }

  /** Parses unvalidated text. Throws unless it is valid JSON, not nested too deeply, and without repeated members. */
  static parse(text: string): Json {
    const value: unknown = jsonValue(text)
    // Replace line breaks, which occur only between JSON tokens: a server may expect each message on one line.
    const bytes = Buffer.from(text.replace(/[\r\n]/g, ' ').trim())
    const { members: written, depth } = extentOf(bytes)
    if (depth > maxDepth) throw new SyntaxError(`it is nested deeper than ${maxDepth} levels`)
    if (written !== countMembers(value)) throw new SyntaxError('a member occurs twice in one object')
    return Json.read(value, bytes)
  }

  /** Parses the text if it is valid JSON for this value. Serializing the value would round numbers beyond 2^53. */
  static parseIfSame<T>(text: string, value: T): Json<T> | undefined {
    try {
      const json = Json.parse(text) as Json<T>
      return JSON.stringify(json.value) === JSON.stringify(value) ? json : undefined
    } catch {
      return undefined
    }
  }

  get value(): T {
    if (!this.#parsed) {
      this.#value = jsonValue((this.#bytes as Buffer).toString('utf8')) as T
      this.#parsed = true
    }
    return this.#value as T
  }

  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(JSON.stringify(this.#value))
    return this.#bytes
  }

  /** The value with a `ExactNumber` in place of each number that a double cannot hold. Usually this is the plain value. */
  get exact(): T {
    this.#exact ??= this.#received ? exactValue(this.bytes, this.value) : this.value
    return this.#exact
  }

  member(name: string): Json | undefined {
    const { value } = this
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    const slice = this.#received ? members(this.bytes)?.get(name) : undefined
    const inner = (value as Record<string, unknown>)[name]
    return slice === undefined ? Json.of(inner) : Json.read(inner, slice)
  }

  /** The elements of an array, with their original bytes; no elements if the value is not an array. */
  items(): readonly Json[] {
    const { value } = this
    if (!Array.isArray(value)) return []
    const slices = this.#received ? elements(this.bytes) : undefined
    return value.map((item, index) => {
      const slice = slices?.[index]
      return slice === undefined ? Json.of(item) : Json.read(item, slice)
    })
  }
}
