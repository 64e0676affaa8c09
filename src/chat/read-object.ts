import { isSchemaObject as isObject, type SchemaObject as JsonObject } from './constrain/schema.ts'
import { repair } from './repair/repair.ts'

export interface ReadObjectOptions {
  /** Whether an object looks like the one that was asked for: of several, that one is meant. */
  readonly accepts: (value: JsonObject) => boolean
  /** Half of it will do. */
  readonly partial?: boolean
}

/** The object that a model meant, or what is wrong with what it wrote, as the end of a sentence that begins with "it". */
export function readObject(
  text: string,
  { accepts, partial = false }: ReadObjectOptions,
): { readonly value: JsonObject } | { readonly problem: string } {
  const found = repair(text, { accepts: (value) => isObject(value) && accepts(value) })
  if ('unreadable' in found) return { problem: found.unreadable }
  if (!isObject(found.value)) return { problem: 'is no JSON object' }
  // Half a path or half a query is not what anybody wanted to have done.
  if (!found.complete && !partial && !lacksBracketsOnly(text)) return { problem: 'was cut off' }
  return { value: found.value }
}

const closers = ['}', ']}', '}}', '}]}', ']}}']

/** A model that forgets the last brackets has still said all that it wanted to; a number may go on. */
function lacksBracketsOnly(text: string): boolean {
  const end = text.trimEnd()
  return !/\d$/.test(end) && closers.some((closer) => isJson(end + closer))
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
