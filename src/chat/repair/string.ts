import { closes, type Role } from './closing.ts'
import { decode, withoutTorn } from './decode.ts'
import { pastGap } from './gap.ts'
import { isQuotedKey } from './keys.ts'
import { cutOff, type Reader, spend } from './reader.ts'
import { closersOf, isQuote, pastSpaces } from './signs.ts'

/** Reads the string whose opening quote stands here, and those that are joined to it by a plus. */
export function readString(reader: Reader, role: Role): string {
  const first = readOne(reader, role)
  if (role === 'key') return first
  const parts = [first]
  for (;;) {
    const plus = pastSpaces(reader.text, reader.at)
    const next = pastGap(reader.text, plus + 1)
    if (reader.text[plus] !== '+' || !isQuote(reader.text.charAt(next))) return parts.join('')
    reader.repairs.add('joined strings')
    reader.at = next
    parts.push(readOne(reader, role))
  }
}

function readOne(reader: Reader, role: Role): string {
  const { text, at } = reader
  const quote = text.charAt(at)
  if (quote !== '"') reader.repairs.add('mended quotes')
  const triple = readTriple(reader, quote)
  if (triple !== undefined) return triple
  const { end, past, open } = findEnd(reader, role, quote)
  spend(reader.purse, end - at)
  const raw = text.slice(at + 1, end)
  if (open) cutOff(reader)
  else reader.at = past
  return decode(open ? withoutTorn(raw) : raw, quote, reader.repairs)
}

/** `"""` and `'''` hold quotes and line breaks as they are. */
function readTriple(reader: Reader, quote: string): string | undefined {
  const { text, at } = reader
  const three = quote.repeat(3)
  if ((quote !== '"' && quote !== "'") || !text.startsWith(three, at)) return undefined
  const end = text.indexOf(three, at + 3)
  spend(reader.purse, (end < 0 ? text.length : end) - at)
  if (end < 0) return undefined
  reader.repairs.add('mended quotes')
  reader.at = end + 3
  return decode(text.slice(at + 3, end), quote, new Set())
}

interface End {
  readonly end: number
  readonly past: number
  /** The text ended before the string. */
  readonly open?: true
}

function findEnd(reader: Reader, role: Role, quote: string): End {
  const { text, at } = reader
  const ends = closersOf(quote)
  let inner = false
  /** Curly quotes in pairs are part of a plain string. */
  let paired = false
  let rescue: End | undefined
  for (let index = at + 1; index < text.length; index++) {
    const sign = text.charAt(index)
    if (sign === '\\') {
      index++
      rescue ??= escapedEnd(reader, index, role, quote)
    } else if (sign === '“' && quote === '"') paired = true
    else if (ends.includes(sign)) {
      if (!(paired && sign === '”') && closes(reader, index, role)) {
        if (inner) reader.repairs.add('escaped quotes')
        return { end: index, past: index + 1 }
      }
      inner = true
      rescue ??= forgotten(reader, at, index, role)
    }
  }
  return rescued(reader, rescue) ?? lostAtTheEnd(reader, role)
}

/** `"C:\"}` ends at its escaped quote after all, if nothing else ends it and something follows that may. */
function escapedEnd(reader: Reader, at: number, role: Role, quote: string): End | undefined {
  const { text } = reader
  if (text[at] !== quote || !closes(reader, at, role) || pastSpaces(text, at + 1) === text.length) return undefined
  return { end: at, past: at + 1 }
}

/** A quote that opens the next key shows that the string before it was never closed: `{"a": "x, "b": 1}`. */
function forgotten({ text, purse }: Reader, from: number, at: number, role: Role): End | undefined {
  if (role !== 'member' || !isQuotedKey(text, at)) return undefined
  spend(purse, 16)
  let end = at
  while (end > from + 1 && /\s/.test(text.charAt(end - 1))) end--
  const broken = text.slice(end, at).includes('\n')
  spend(purse, at - end)
  if (text[end - 1] === ',') return { end: end - 1, past: end - 1 }
  return broken ? { end, past: end } : undefined
}

function rescued(reader: Reader, rescue: End | undefined): End | undefined {
  if (!rescue || reader.rescues === 0) return undefined
  reader.rescues--
  spend(reader.purse, reader.text.length - reader.at)
  reader.repairs.add('mended quotes')
  return rescue
}

/**
 * Nothing ends it but the text itself, or the brackets that end the text: `{"a": ["x]}`. They may as well be the last
 * that is left of a longer string, so that nobody may rely on its being complete.
 */
function lostAtTheEnd(reader: Reader, role: Role): End {
  const { text } = reader
  const open = role === 'key' ? [] : reader.open
  reader.complete = false
  spend(reader.purse, text.length - reader.at)
  let end = text.length
  if (open.length === 0) return { end, past: end, open: true }
  for (const opener of open) {
    while (end > reader.at && /\s/.test(text.charAt(end - 1))) end--
    if (text[end - 1] !== (opener === '{' ? '}' : ']')) return { end: text.length, past: text.length, open: true }
    end--
  }
  while (end > reader.at + 1 && /\s/.test(text.charAt(end - 1))) end--
  reader.repairs.add('mended quotes')
  return { end, past: end }
}
