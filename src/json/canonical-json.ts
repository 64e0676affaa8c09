import { ExactNumber } from './parse-json.ts'

/** The default limit for nesting, far below the depth at which recursion overflows the stack. */
export const defaultMaxDepth = 256

interface Budget {
  characters: number
  depth: number
}

export class TooLong extends Error {}

/**
 * Canonical JSON (RFC 8785): no white space, members sorted by the UTF-16 code units of their names, numbers and
 * strings as `JSON.stringify` writes them. As in `JSON.stringify`, values without a JSON form are omitted or become
 * null; BigInts, circular values and values that are nested too deeply throw. Parsing the text and canonicalizing the
 * result gives the same text. Throws `TooLong` soon after the text exceeds `limits.characters`.
 */
export function canonical(value: unknown, limits: Partial<Budget> = {}): string {
  const { characters = Number.POSITIVE_INFINITY, depth = defaultMaxDepth } = limits
  const text = write(value, { characters, depth }, 0)
  if (text === undefined) throw new TypeError('the value cannot be represented as JSON')
  return text
}

function write(value: unknown, budget: Budget, depth: number): string | undefined {
  if (depth > budget.depth) throw new RangeError('nested too deeply')
  if (value instanceof ExactNumber) return write(value.source, budget, depth)
  const plain = hasToJson(value) ? value.toJSON() : value
  if (typeof plain !== 'object' || plain === null) {
    const text = JSON.stringify(plain) as string | undefined
    spend(budget, text?.length ?? 0)
    return text
  }
  spend(budget, 2)
  if (Array.isArray(plain))
    return `[${Array.from(plain, (item) => write(item, budget, depth + 1) ?? 'null').join(',')}]`
  let members = ''
  for (const name of Object.keys(plain).sort()) {
    const text = write((plain as Record<string, unknown>)[name], budget, depth + 1)
    if (text === undefined) continue
    spend(budget, name.length + 4)
    members += `${members && ','}${JSON.stringify(name)}:${text}`
  }
  return `{${members}}`
}

function spend(budget: Budget, characters: number): void {
  budget.characters -= characters
  if (budget.characters < 0) throw new TooLong('longer than the limit')
}

const hasToJson = (value: unknown): value is { toJSON(): unknown } =>
  typeof (value as { toJSON?: unknown } | null | undefined)?.toJSON === 'function'
