import { isSchemaObject as isObject, type SchemaObject as JsonObject } from './constrain/schema.ts'
import { repair } from './repair/repair.ts'

export interface ReadObjectOptions {
  /** Whether an object looks like the one that was asked for: of several, that one is meant. */
  readonly accepts: (value: JsonObject) => boolean
  /** Half of it will do. */
  readonly partial?: boolean
  /** The model has ended its answer itself: what follows a last comma is nothing, not something that was cut off. */
  readonly ended?: boolean
}

/** The object that a model meant, or what is wrong with what it wrote, as the end of a sentence that begins with "it". */
export function readObject(
  text: string,
  { accepts, partial = false, ended = false }: ReadObjectOptions,
): { readonly value: JsonObject } | { readonly problem: string } {
  const found = repair(text, { accepts: (value) => isObject(value) && accepts(value) })
  if ('unreadable' in found) return { problem: found.unreadable }
  if (!isObject(found.value)) return { problem: 'is no JSON object' }
  // Half a path or half a query is not what anybody wanted to have done. A model that forgets the last brackets has still
  // said all that it wanted to.
  const isWhole = found.complete || found.lacks === 'brackets' || (ended && found.lacks === 'maybe-more')
  if (!isWhole && !partial) return { problem: 'was cut off' }
  return { value: found.value }
}
