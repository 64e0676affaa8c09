import { CannotExpress, step } from './cannot-express.ts'
import { merge } from './merge.ts'
import { type Purse, stepsPerSchema } from './purse.ts'
import { resolve } from './references.ts'
import { type Schema, type SchemaObject, schemasIn } from './schema.ts'

/** A schema with everything that it refers to, or that its `allOf` adds, put in its place. */
export type Flatten = (schema: SchemaObject, at: string) => Schema

/** References that lead to references: more of them than anybody writes are a circle. */
const maxHops = 32

/** Flattens the parts of one schema. A part may be joined with itself again and again, so that its size says nothing. */
export function flattenIn(root: Schema, purse: Purse): Flatten {
  return (schema, at) => flatten(schema, at, 0)

  function flatten(schema: SchemaObject, at: string, hops: number): Schema {
    if (hops > maxHops) throw new CannotExpress(at, '$ref', 'goes round in a circle')
    const { $ref, allOf, ...own } = schema
    let flat: Schema = own
    if (typeof $ref === 'string') flat = joined(flat, resolve(root, $ref, at), at, hops)
    for (const [index, part] of schemasIn(allOf).entries()) flat = joined(flat, part, step(at, 'allOf', index), hops)
    return flat
  }

  function joined(flat: Schema, part: Schema, at: string, hops: number): Schema {
    purse.spend(stepsPerSchema, at)
    const whole = merge(flat, typeof part === 'boolean' ? part : flatten(part, at, hops + 1), at)
    purse.spend(JSON.stringify(whole).length, at)
    return whole
  }
}
