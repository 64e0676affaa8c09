import { shortEscapes } from '../short-escapes.ts'
import type { Repair } from './report.ts'

const escaped = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|[\s\S])|$)/g
const control = /[\x00-\x1f]/
const invalid = /\\(?:u(?![0-9a-fA-F]{4})|x(?![0-9a-fA-F]{2})|[^"\\/bfnrtux'`$\r\n])/
const drive = /^[A-Za-z]:\\(?!\\)/

/**
 * What the text between two quotes means. A backslash that escapes nothing is kept, as it was meant. Beside such a one
 * those of a form feed and a backspace escape nothing either, and in the path of a drive none of them does.
 */
export function decode(raw: string, quote: string, repairs: Set<Repair>): string {
  if (control.test(raw)) repairs.add('escaped control characters')
  if (!raw.includes('\\')) return raw
  const isSloppy = invalid.test(raw.replaceAll('\\\\', ''))
  if (isSloppy) repairs.add('kept backslashes')
  if (isSloppy && drive.test(raw)) return raw
  return raw.replace(escaped, (whole, unicode?: string, byte?: string, sign?: string) => {
    if (unicode !== undefined) return String.fromCharCode(Number.parseInt(unicode, 16))
    if (byte !== undefined) {
      repairs.add('mended quotes')
      return String.fromCharCode(Number.parseInt(byte, 16))
    }
    if (sign === undefined) return whole
    if (sign === '\n' || sign === '\r\n') return ''
    if (isSloppy && (sign === 'b' || sign === 'f')) return whole
    if (sign === quote || sign === "'" || sign === '`' || sign === '$') return sign
    return shortEscapes[sign] ?? whole
  })
}

/** Without an escape that was cut off at the end, or half a character. */
export const withoutTorn = (raw: string): string =>
  raw
    .replace(/(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?$/, '$1')
    .replace(/\\u[dD][89abAB][0-9a-fA-F]{2}$/, '')
    .replace(/[\uD800-\uDBFF]$/, '')
