const prefix = '=?base64?'
const suffix = '?='

/** What a header may carry as it stands: printable ASCII and tabs, neither empty nor with space around it. */
const plain = /^(?![\t ])[\t\x20-\x7e]+(?<![\t ])$/
const canonical = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** A text as a header carries it: plain where that is safe, otherwise the base64 form that the protocol defines. */
export const encodeHeaderValue = (text: string): string =>
  plain.test(text) && !isWrapped(text) ? text : `${prefix}${Buffer.from(text).toString('base64')}${suffix}`

/** The text that a header carries, or `undefined` if that is no proper form of any text. */
export function decodeHeaderValue(value: string): string | undefined {
  const given = value.replace(/^[\t ]+/, '').trimEnd()
  if (!isWrapped(given)) return /^[\t\x20-\x7e]*$/.test(given) ? given : undefined
  const base64 = given.slice(prefix.length, -suffix.length)
  if (!canonical.test(base64)) return undefined
  const bytes = Buffer.from(base64, 'base64')
  const text = bytes.toString('utf8')
  // Bits that padding ignores, or bytes that are not UTF-8, would let two spellings stand for one text.
  return bytes.toString('base64') === base64 && Buffer.from(text).equals(bytes) ? text : undefined
}

const isWrapped = (text: string): boolean =>
  text.length >= prefix.length + suffix.length && text.startsWith(prefix) && text.endsWith(suffix)
