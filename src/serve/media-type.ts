import { Refusal, rpc } from './refusal.ts'

/** Most clients send one of these; they need no parsing. */
const usual: ReadonlySet<string> = new Set(['application/json', 'application/json; charset=utf-8'])

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const form = new RegExp(
  `^application/json((?:[ \\t]*;(?:[ \\t]*${token}=(?:${token}|"(?:[^"\\\\]|\\\\.)*"))?)*)[ \\t]*$`,
  'i',
)
const parameter = new RegExp(`(${token})=(?:(${token})|"((?:[^"\\\\]|\\\\.)*)")`, 'g')

/** Throws a 415 unless the header says JSON in UTF-8; JSON has no other encoding on the wire (RFC 8259). */
export function checkMediaType(type: string | undefined): void {
  if (type !== undefined && usual.has(type)) return
  const parameters = type === undefined ? undefined : form.exec(type)?.[1]
  if (parameters === undefined) throw unsupported('The body must be JSON: send "Content-Type: application/json".')
  const charsets: string[] = []
  for (const [, name = '', plain, quoted = ''] of parameters.matchAll(parameter)) {
    // `charset*` is the extended form of RFC 5987.
    if (/^charset\*?/i.test(name)) charsets.push(plain ?? quoted.replace(/\\(.)/g, '$1'))
  }
  const [charset, second] = charsets
  if (second !== undefined) throw unsupported('The Content-Type header has more than one charset: send one, UTF-8.')
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw unsupported('The body must be in UTF-8: send "Content-Type: application/json".')
  }
}

const unsupported = (sentence: string) => new Refusal(415, rpc.request, sentence)
