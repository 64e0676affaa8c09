/** A text in another spelling, with the place in the original of each of its characters and of its end. */
export interface Decoded {
  readonly text: string
  readonly places: Uint32Array
}

/** Undoes one layer of encoding; `undefined` where there is none. */
export type Decode = (text: string) => Decoded | undefined

/** What an escape means, as units of UTF-16 or bytes of UTF-8, and how many characters it takes. */
interface Escape {
  readonly length: number
  readonly units: readonly number[]
}

/** The escape that begins at a place where one of the marks stands. */
type ReadEscape = (text: string, at: number) => Escape | undefined

const decoder =
  (mark: RegExp, readEscape: ReadEscape): Decode =>
  (text) => {
    const escapes: (Escape & { readonly at: number })[] = []
    let end = 0
    for (const { index } of text.matchAll(mark)) {
      const read = index < end ? undefined : readEscape(text, index)
      if (!read) continue
      escapes.push({ ...read, at: index })
      end = index + read.length
    }
    if (escapes.length === 0) return undefined
    // An escape never means more units than it has characters.
    const places = new Uint32Array(text.length + 1)
    let result = ''
    let length = 0
    let done = 0
    const plain = (until: number) => {
      result += text.slice(done, until)
      for (; done < until; done++) places[length++] = done
    }
    for (const { at, units, length: taken } of escapes) {
      plain(at)
      result += String.fromCharCode(...units)
      for (const _ of units) places[length++] = at
      done = at + taken
    }
    plain(text.length)
    places[length] = text.length
    return { text: result, places }
  }

const space: Escape = { length: 1, units: [0x20] }

/** `%2F`, in any case and also where it was not needed; with `+` for a space, as forms write it, if so wanted. */
export const percentDecoder = ({ plus }: { plus: boolean }): Decode => {
  const decode = decoder(plus ? /[%+]/g : /%/g, (text, at) => {
    if (text.charCodeAt(at) === 0x2b) return space
    const byte = hexAt(text, at + 1, 2)
    return byte < 0 ? undefined : { length: 3, units: [byte] }
  })
  return (text) => (text.includes(plus ? '+' : '%') ? decode(text) : undefined)
}

/** The line breaks of base64 that was wrapped, as mail and PEM files do. */
export const wrappedDecoder = (): Decode => {
  const decode = decoder(/\r?\n[ \t]{0,8}/g, (text, at) => {
    if (!/[\w+/-]{32}$/.test(text.slice(Math.max(0, at - 32), at))) return undefined
    return { length: /^\r?\n[ \t]{0,8}/.exec(text.slice(at, at + 10))?.[0].length ?? 1, units: [] }
  })
  return (text) => (text.includes('\n') ? decode(text) : undefined)
}

const short: Readonly<Record<string, number>> = { b: 8, f: 12, n: 10, r: 13, t: 9, '"': 34, '/': 47, '\\': 92 }

/** `\"`, `\n`, `\u002f` and the like. */
export const jsonDecoder = ({ asBytes }: { asBytes: boolean }): Decode => {
  const unitsOf = (point: number) => (asBytes ? [...Buffer.from(String.fromCodePoint(point))] : [point])
  const decode = decoder(/\\/g, (text, at) => {
    const meaning = short[text.charAt(at + 1)]
    if (meaning !== undefined) return { length: 2, units: [meaning] }
    const unit = text.charAt(at + 1) === 'u' ? hexAt(text, at + 2, 4) : -1
    if (unit < 0) return undefined
    const low = asBytes && unit >> 10 === 0x36 && text.startsWith('\\u', at + 6) ? hexAt(text, at + 8, 4) : -1
    if (low >> 10 !== 0x37) return { length: 6, units: unitsOf(unit) }
    return { length: 12, units: unitsOf(((unit & 0x3ff) << 10) + (low & 0x3ff) + 0x10000) }
  })
  return (text) => (text.includes('\\') ? decode(text) : undefined)
}

function hexAt(text: string, at: number, digits: number): number {
  let value = 0
  for (let index = at; index < at + digits; index++) {
    const digit = hexDigits[text.charCodeAt(index)] ?? -1
    if (digit < 0) return -1
    value = value * 16 + digit
  }
  return value
}

const hexDigits = Int8Array.from({ length: 103 }, (_, code) => {
  const digit = String.fromCharCode(code)
  return /[0-9a-fA-F]/.test(digit) ? Number.parseInt(digit, 16) : -1
})
