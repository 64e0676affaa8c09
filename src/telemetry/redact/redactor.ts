import { hash } from 'node:crypto'
import { concealAssignments } from './assignments.ts'
import { bounds } from './bounds.ts'
import { createKeyMatcher, isCount } from './keys.ts'
import { type Conceal, createConceal, redacted } from './known.ts'
import { concealPatterns } from './patterns.ts'
import { dropped, type Visit, walk } from './walk.ts'

export interface RedactorOptions {
  /** Values that must never be seen. Those shorter than six characters are ignored: they would redact everything. */
  readonly secrets: readonly string[]
  /** Others that come and go; another list whenever they do. */
  readonly tokens?: () => readonly string[]
  /** Names whose values must never be seen, with `*`. */
  readonly keys: readonly string[]
}

/** Takes secrets out of what is written down. */
export interface Redactor {
  /**
   * A JSON value without secrets: known values first, wherever and however they are spelled, then the values of
   * secret names, then whatever has the form of a credential. The value itself is never changed; what cannot be
   * handled is left out, what is too deep or too long is cut.
   */
  value(value: unknown): unknown
  /** The same for a text. */
  text(text: string): string
  /** Without the known values alone: for whoever wants to see everything else. */
  known(value: unknown): unknown
  /** The same for a line of any length, of which nothing is cut. */
  line(text: string): string
}

export function createRedactor({ secrets, tokens = none, keys }: RedactorOptions): Redactor {
  const concealSecrets = createConceal(secrets)
  const concealTokens = concealThose(tokens)
  const conceal: Conceal = (text) => concealTokens(concealSecrets(text))
  const isSecretKey = createKeyMatcher(keys)
  const inNumbers = secrets.some((secret) => /^[\d.-]+$/.test(secret.trim()))

  const cleanNumber = (value: number): unknown =>
    inNumbers && conceal(String(value)) !== String(value) ? redacted : value

  const cleanText = (text: string, depth: number): string => {
    return shorten(text, bounds.text, (part) => {
      const concealed = conceal(part)
      return concealJson(concealed, depth) ?? concealPatterns(concealAssignments(concealed, isSecretKey))
    })
  }

  /** A text that is JSON is redacted as what it means; `undefined` if it is none. */
  const concealJson = (text: string, depth: number): string | undefined => {
    if (!/^\s*[[{]/.test(text)) return undefined
    const value = parsed(text)
    if (value === undefined) return undefined
    const clean = walk(value, visit, depth + 1)
    return clean === value ? text : clean === dropped ? redacted : JSON.stringify(clean)
  }

  const visit: Visit = {
    ...bounds,
    key: (name) => shorten(name, bounds.name, (part) => concealPatterns(conceal(part))),
    hides: (name, value) => isSecretKey(name) && !(typeof value === 'number' && isCount(name)),
    text: cleanText,
    number: cleanNumber,
  }

  const visitKnown: Visit = {
    ...bounds,
    key: (name) => shorten(name, bounds.name, conceal),
    hides: () => false,
    text: (text) => shorten(text, bounds.fullText, conceal),
    number: cleanNumber,
  }

  return {
    value: (value) => undefinedIfDropped(walk(value, visit)),
    known: (value) => undefinedIfDropped(walk(value, visitKnown)),
    line: conceal,
    text(text) {
      try {
        return cleanText(text, 0)
      } catch {
        return redacted
      }
    },
  }
}

const noTokens: readonly string[] = []
const none = () => noTokens

/** Looks for what is in the list at the time. */
function concealThose(list: () => readonly string[]): Conceal {
  let [known, conceal]: [readonly string[], Conceal] = [noTokens, (text) => text]
  return (text) => {
    const now = list()
    if (now !== known) [known, conceal] = [now, createConceal(now)]
    return conceal(text)
  }
}

const undefinedIfDropped = (value: unknown): unknown => (value === dropped ? undefined : value)

/**
 * Cuts a long text after it has been cleaned, with some more beyond the cut cleaned too: a secret that the cut would
 * halve is found whole.
 */
function shorten(text: string, most: number, clean: Conceal): string {
  if (text.length <= most) return clean(text)
  const part = clean(text.slice(0, most + bounds.beyond))
  return `${part.slice(0, -bounds.beyond).toWellFormed()}… (${text.length} characters, SHA-256 ${hash('sha256', text)})`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
