/**
 * A JSON value kept as the bytes it came in, as the value it means, or both.
 * Each is made from the other at most once, so what is only carried is never parsed and never re-serialised.
 */
export class Json<T = unknown> {
  #value: T | undefined
  #bytes: Buffer | undefined
  #parsed: boolean

  private constructor(value: T | undefined, bytes: Buffer | undefined) {
    this.#value = value
    this.#bytes = bytes
    this.#parsed = bytes === undefined
  }

  static of<T>(value: T): Json<T> {
    return new Json<T>(value, undefined)
  }

  /** The bytes must be one complete JSON value; whoever framed them has seen to that. */
  static raw<T = unknown>(bytes: Buffer): Json<T> {
    return new Json<T>(undefined, bytes)
  }

  get value(): T {
    if (!this.#parsed) {
      this.#value = JSON.parse((this.#bytes as Buffer).toString('utf8')) as T
      this.#parsed = true
    }
    return this.#value as T
  }

  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(JSON.stringify(this.#value))
    return this.#bytes
  }
}
