import type { Definition } from './entry.ts'

const schemaLengths = new WeakMap<object, number>()

/** What a tool costs a model's context: its name, description and schema, about four characters a token. */
export const tokensOf = (name: string, { description, inputSchema }: Definition): number =>
  Math.ceil((name.length + (description?.length ?? 0) + lengthOf(inputSchema)) / 4)

/** A schema is written out once, however often a registry of thousands is summed up. */
function lengthOf(schema: Definition['inputSchema']): number {
  if (schema === undefined) return 0
  let length = schemaLengths.get(schema)
  if (length === undefined) {
    length = JSON.stringify(schema).length
    schemaLengths.set(schema, length)
  }
  return length
}
