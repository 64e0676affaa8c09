import { escapeCharacter } from '../../lib/characters.ts'

export type FindingKind =
  | 'hidden-character'
  | 'tag-characters'
  | 'bidi'
  | 'escape'
  | 'homoglyph'
  | 'look-alike'
  | 'encoded'
  | 'padding'
  | 'instruction'
  | 'secrecy'
  | 'exfiltration'
  | 'shadowing'
  | 'consent'
  | 'unscanned'

/** Something in a definition that a person should check before a model reads it. */
export interface ScanFinding {
  readonly kind: FindingKind
  /** `high`: no legitimate text needs it. `warn`: it is rare in legitimate text. `info`: not flagged, only shown. */
  readonly severity: 'high' | 'warn' | 'info'
  /** The path to the text within the definition, such as `inputSchema.properties.path.description`. */
  readonly where: string
  /** A short part of the text, with invisible characters escaped. */
  readonly excerpt: string
}

/** Characters that a reader cannot see: they move the cursor, change the writing direction or have no width. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu

/** Escapes control, hidden and direction characters as `\u{…}`, which makes the text safe for terminals and logs. */
export function visible(text: string, keep: 'lines' | 'nothing' = 'nothing'): string {
  return text.replace(unseen, (character) => {
    if (keep === 'lines' && (character === '\n' || character === '\t')) return character
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    return escapeCharacter(character)
  })
}

/** A finding in one line, for terminals, logs and the inbox. */
export const findingText = ({ kind, where, excerpt }: ScanFinding): string => `${kind} in ${visible(where)}: ${excerpt}`

/** A short one-line excerpt around a position, with invisible characters escaped. */
export function excerptOf(text: string, at = 0, length = 0): string {
  const from = Math.max(0, at - before)
  const to = Math.min(text.length, at + Math.min(length, maxMatch) + after)
  const middle = visible(
    text
      .slice(from, to)
      .toWellFormed()
      .replace(/[ \t\r\n]+/g, ' '),
  )
  return `${from > 0 ? '…' : ''}${middle.slice(0, maxExcerpt)}${to < text.length || middle.length > maxExcerpt ? '…' : ''}`
}

const before = 30
const after = 30
const maxMatch = 80
const maxExcerpt = 200
