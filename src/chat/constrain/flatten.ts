import { CannotExpress, step } from './cannot-express.ts'
import { merge } from './merge.ts'
import { resolve } from './references.ts'
import { type Schema, type SchemaObject, schemasIn } from './schema.ts'

/** References that lead to references: more of them than anybody writes are a circle. */
const mostHops = 32

/** A schema with everything that it refers to, or that its `allOf` adds, put in its place. */
export function flatten(root: Schema, schema: SchemaObject, at: string, hops = 0): Schema {
  if (hops > mostHops) throw new CannotExpress(at, '$ref', 'goes round in a circle')
  const { $ref, allOf, ...own } = schema
  let flat: Schema = own
  if (typeof $ref === 'string') flat = joined(root, flat, resolve(root, $ref, at), at, hops)
  for (const [index, part] of schemasIn(allOf).entries()) {
    flat = joined(root, flat, part, step(at, 'allOf', index), hops)
  }
  return flat
}

function joined(root: Schema, flat: Schema, part: Schema, at: string, hops: number): Schema {
  return merge(flat, typeof part === 'boolean' ? part : flatten(root, part, at, hops + 1), at)
}
