import type { Exposure, Served, View } from './access.ts'
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

export const exposures: readonly Exposure[] = ['direct', 'meta', 'both', 'code']

const known = new WeakMap<readonly Served[], number>()

/** What a list of tools costs a model's context. Added up once: views give the same list until something changes. */
export function costOf(tools: readonly Served[]): number {
  const before = known.get(tools)
  if (before !== undefined) return before
  const sum = tools.reduce((total, { name, definition }) => total + tokensOf(name, definition), 0)
  known.set(tools, sum)
  return sum
}

/** What a caller's tools would cost in each exposure mode (B8). */
export const costsOf = (view: View): Readonly<Record<Exposure, number>> => ({
  direct: costOf(view.shown('direct')),
  meta: costOf(view.shown('meta')),
  both: costOf(view.shown('both')),
  code: costOf(view.shown('code')),
})
